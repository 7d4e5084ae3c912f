/**
 * Files of other people (`shared/foreign`, beside the project's folder or above it). Tests read them where they lie.
 * The project does not contain them, so elsewhere these tests are skipped.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { repositoryRoot } from './source-files.ts'

/** The path of `shared/foreign/<name>`, and for the title of a test the reason to skip it. */
export function findForeign(name: string): { path: string; isMissing: boolean; note: string } {
  for (let folder = repositoryRoot; dirname(folder) !== folder; folder = dirname(folder)) {
    const path = join(dirname(folder), 'shared', 'foreign', name)
    if (existsSync(path)) return { path, isMissing: false, note: '' }
  }
  return { path: '', isMissing: true, note: ` (skipped: there is no shared/foreign/${name})` }
}
