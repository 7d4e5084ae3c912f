/** examples/workflows, which docs/guides/workflows.md shows. */
import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { startExample } from './run-example.ts'

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
  const env = { POSTERN_URL: postern.url, SECRET_KEY: postern.key }
  const { child, ended, output } = startExample('examples/workflows/sign-in.mjs', env, [to, email])
  const lines = () => output().split('\n').slice(0, -1)
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
