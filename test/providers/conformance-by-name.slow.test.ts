import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { commonEnv } from '../tools/processes.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const run = promisify(execFile)
const conformance = (name: string) =>
  run('npm', ['run', '--silent', 'conformance', '--', name], {
    cwd: repositoryRoot,
    env: { ...process.env, ...commonEnv },
  })

test('npm run conformance -- http: the kind of Postern; the sandbox has no far end', async () => {
  const { stdout } = await conformance('http')
  expect(stdout).toMatch(/^The kind http\n/)
  expect(stdout).toMatch(/All \d+ promises are kept/)
  await expect(conformance('sandbox')).rejects.toMatchObject({
    code: 1,
    stderr: 'sandbox: this kind has no far end\n',
  })
})
