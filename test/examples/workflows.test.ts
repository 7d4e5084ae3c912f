/** examples/workflows, which docs/guides/workflows.md shows. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { releaseLater } from '../tools/release.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'

const by = (provider: string) => [{ use: [provider] }]

test('examples/workflows: the SMS fails, so a call begins by itself; the mail begins at next, and the code of the call passes', async () => {
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      providers: {
        ok: { kind: 'sandbox' },
        refuses: { kind: 'sandbox', faults: [{ result: 'rejected' }] },
      },
      workflows: { default: ['sms', 'voice', 'email'] },
      routes: { sms: by('refuses'), voice: by('ok'), email: by('ok') },
    },
  })
  const [to, email] = ['+8613800138000', 'ada@example.com']
  const child = spawn('node', ['examples/workflows/sign-in.mjs', to, email], {
    cwd: repositoryRoot,
    env: { ...process.env, POSTERN_URL: postern.url, SECRET_KEY: postern.key },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  releaseLater(() => {
    child.kill('SIGKILL')
    return ended
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text) => (output += text))
  const lines = () => output.split('\n').slice(0, -1)
  const said = (...expected: string[]) =>
    eventually(() => expect(lines().slice(-expected.length)).toEqual(expected))

  await said('way 1 of 3: sms, next: voice')
  const call = (await postern.messageFor(to)).text
  child.stdin.write('\n')
  await said('way 2 of 3: voice, next: email')
  child.stdin.write('next\n')
  await said('way 3 of 3: email')
  child.stdin.write('next\n')
  await said(expect.stringContaining('way'))
  await postern.messageFor(email)
  child.stdin.write(`${call.replaceAll(', ', '').match(/\d{4}/)?.[0]}\n`)
  await said('sms failed rejected', 'voice sent passed', 'email sent')
  expect(await ended).toEqual([0, null])
})
