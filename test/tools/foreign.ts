/**
 * Files of other people (`shared/foreign`, beside the project's folder or above it). Tests read them there. The
 * project does not contain them, so elsewhere these tests are skipped.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { repositoryRoot } from './source-files.ts'

/** The path of `shared/foreign/<name>`, and the reason to skip a test, for its title. */
export function findForeign(name: string): { path: string; isMissing: boolean; note: string } {
  for (let folder = repositoryRoot; dirname(folder) !== folder; folder = dirname(folder)) {
    const path = join(dirname(folder), 'shared', 'foreign', name)
    if (existsSync(path)) return { path, isMissing: false, note: '' }
  }
  return { path: '', isMissing: true, note: ` (skipped: there is no shared/foreign/${name})` }
}
