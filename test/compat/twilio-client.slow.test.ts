/** Twilio's own client, with only its address changed. The program of examples/ installs it. */
import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { installExamples, startServer } from '../examples/run-example.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { readSource } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'

const run = promisify(execFile)
const folder = await installExamples(['twilio-verify'])
const twilio = createRequire(join(folder, 'package.json'))('twilio')

const [account, va] = [`AC${'0'.repeat(32)}`, `VA${'a'.repeat(32)}`]
const twilioVerify = { services: { [va]: { app: 'default', scene: 'signup' } } }
const code = { length: 6 }
const postern = await startPostern({
  policyFile: { policies: noLimits, code, compat: { twilioVerify } },
})
const clientWith = (key: string) => {
  const client = twilio(account, key)
  client.verify.baseUrl = postern.url
  return client
}
const client = clientWith(postern.key)
const { verifications, verificationChecks } = client.verify.v2.services(va)
const verification = (sid: string) => client.verify.v2.services(va).verifications(sid)

test('sends, fetches, checks wrong and right, and then there is none', async () => {
  const to = '+8613800140001'
  const sent = await verifications.create({ to, channel: 'sms', locale: 'zh' })
  expect(sent).toMatchObject({
    to,
    channel: 'sms',
    status: 'pending',
    valid: false,
    serviceSid: va,
  })
  expect(sent.dateCreated.getTime()).toBeGreaterThan(Date.now() - 60_000)
  expect(await verification(sent.sid).fetch()).toMatchObject({ sid: sent.sid, status: 'pending' })
  const right = await postern.codeFor(to)
  const wrong = right === '000000' ? '111111' : '000000'
  expect((await verificationChecks.create({ to, code: wrong })).status).toBe('pending')
  const checked = await verificationChecks.create({ verificationSid: sent.sid, code: right })
  expect(checked).toMatchObject({ status: 'approved', valid: true, sid: sent.sid })
  await expect(verificationChecks.create({ to, code: right })).rejects.toMatchObject({
    status: 404,
    code: 20404,
    moreInfo: 'https://www.twilio.com/docs/errors/20404',
  })
  await eventually(async () => expect((await verification(to).fetch()).status).toBe('approved'))
})

test('cancels and approves; its own code; errors have their code', async () => {
  const to = '+8613800140002'
  const sent = await verifications.create({ to, channel: 'sms', customCode: 'aB12cD' })
  expect((await verification(sent.sid).update({ status: 'canceled' })).status).toBe('canceled')
  await expect(verificationChecks.create({ to, code: 'aB12cD' })).rejects.toMatchObject({
    code: 20404,
  })
  const again = await verifications.create({ to, channel: 'sms' })
  expect((await verification(again.sid).update({ status: 'approved' })).status).toBe('approved')
  const refused: [object, number][] = [
    [{ to: 'x', channel: 'sms' }, 60200],
    [{ to, channel: 'call' }, 60223],
    [{ to: '+442071234567', channel: 'sms' }, 60205],
  ]
  for (const [asked, code] of refused) {
    await expect(verifications.create(asked)).rejects.toMatchObject({ code })
  }
  const stranger = clientWith('psk_wrong').verify.v2.services(va)
  await expect(stranger.verifications.create({ to, channel: 'sms' })).rejects.toMatchObject({
    status: 401,
    code: 20003,
  })
})

test('lists every attempt, page by page, and their sums', async () => {
  const { verificationAttempts, verificationAttemptsSummary } = client.verify.v2
  const from = new Date(Date.now() - 3_600_000)
  const before = await verificationAttempts.list({ dateCreatedAfter: from })
  for (let n = 0; n < 5; n++) {
    await verifications.create({ to: `+861380014001${n}`, channel: 'sms' })
  }
  const listed = await verificationAttempts.list({ dateCreatedAfter: from, pageSize: 2 })
  expect(listed).toHaveLength(before.length + 5)
  expect(new Set(listed.map(({ sid }: { sid: string }) => sid)).size).toBe(listed.length)
  const sums = await verificationAttemptsSummary().fetch({ dateCreatedAfter: from })
  expect(sums.totalAttempts).toBe(listed.length)
})

test('examples/twilio-verify: a code is sent and checked; a refusal has Twilio’s code', async () => {
  const env = { POSTERN_URL: postern.url, SECRET_KEY: postern.key }
  const server = await startServer('server.mjs', () => env, join(folder, 'twilio-verify'))
  const comment = readSource('examples/twilio-verify/server.mjs')
  const [[, command = ''] = []] = comment.matchAll(/ \* {3}(curl localhost:8082\/send .*)/g)
  const origin = new URL(server.origin).host
  const { stdout } = await run('sh', ['-c', command.replace('localhost:8082', origin)])
  expect(stdout.trim()).toBe('pending')

  const to = '+8613800140003'
  async function ask(path: string, form: Record<string, string>) {
    const body = new URLSearchParams(form)
    const answer = await fetch(server.origin + path, { method: 'POST', body })
    return [answer.status, (await answer.text()).trim()]
  }
  expect(await ask('/send', { to })).toEqual([200, 'pending'])
  expect(await ask('/check', { to, code: '1' })).toEqual([200, 'pending'])
  expect(await ask('/check', { to, code: await postern.codeFor(to) })).toEqual([200, 'approved'])
  expect((await ask('/send', { to: 'x' }))[0]).toBe(400)
})
