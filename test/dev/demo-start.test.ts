import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { runCommand } from '../tools/processes.ts'

// Node's `mkdir -p` would try for ever in an existing folder that can contain no other.
test('a data folder that cannot be made: the demo ends and names the setting', async () => {
  const file = join(mkdtempSync(join(inject('runFolder'), 'demo-')), 'file')
  writeFileSync(file, '')
  for (const [folder, code] of [
    ['/proc/x/y', 'ENOENT'],
    [join(file, 'x'), 'ENOTDIR'],
    [file, 'ENOTDIR'],
  ] as const) {
    expect(await runCommand('demo', [], { POSTERN_DATA: folder })).toEqual({
      code: 1,
      stdout: '',
      stderr: `The demo cannot start: ${folder} is not writable (${code}); set POSTERN_DATA to another folder\n`,
    })
  }
})

test.each([
  ['demo', 'npm run demo -- [--no-guide]'],
  ['api', 'npm run start:api'],
  ['worker', 'npm run start:worker'],
] as const)(
  '%s: --help prints the usage, and an unknown option is refused; neither starts it',
  async (command, line) => {
    const noFolder = { POSTERN_DATA: '/proc/x/y' }
    const usage = `Usage: ${line}\n`
    expect(await runCommand(command, ['--help'], noFolder)).toEqual({
      code: 0,
      stdout: usage,
      stderr: '',
    })
    const unknown = await runCommand(command, ['--no-such'], noFolder)
    expect(unknown).toMatchObject({ code: 1, stdout: '' })
    expect(unknown.stderr).toContain(`'--no-such'`)
    expect(unknown.stderr.endsWith(`\n\n${usage}`)).toBe(true)
  },
)
