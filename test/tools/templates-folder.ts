import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inject } from 'vitest'
import { repositoryRoot } from './source-files.ts'

/** A folder with these templates, `{ 'welcome/sms.en.txt': 'Hello' }`, and with the shipped ones if wanted. */
export function templatesFolder(
  files: Readonly<Record<string, string>>,
  options: { withShipped?: boolean } = {},
): string {
  const folder = mkdtempSync(join(inject('runFolder'), 'templates-'))
  if (options.withShipped) cpSync(join(repositoryRoot, 'templates'), folder, { recursive: true })
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}
