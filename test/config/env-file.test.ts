import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { runCommand } from '../tools/processes.ts'

const lines = 'DATABASE_URL=postgresql://127.0.0.1:1/x\n# Café\n'

test.each([
  ['UTF-16 with a mark', Buffer.from(`\ufeff${lines}`, 'utf16le')],
  ['UTF-16 without a mark', Buffer.from(lines, 'utf16le')],
  ['Latin-1', Buffer.from(lines, 'latin1')],
])('a .env in %s stops a command with one line', async (_, bytes) => {
  const folder = mkdtempSync(join(inject('runFolder'), 'env-'))
  writeFileSync(join(folder, '.env'), bytes)
  expect(await runCommand('migrate', [], {}, folder)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'Postern cannot start: .env cannot be read (not UTF-8; save it as UTF-8).\n',
  })
})
