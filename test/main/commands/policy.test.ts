import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, inject, test } from 'vitest'
import { stringify } from 'yaml'
import { testDatabase } from '../../tools/database.ts'
import { noLimits, startPostern } from '../../tools/postern.ts'
import { runCommand } from '../../tools/processes.ts'
import { testRedis } from '../../tools/redis.ts'

const database = await testDatabase()
const env = { DATABASE_URL: database.url }
const policy = (...args: string[]) => runCommand('policy', args, env)
const templates = fileURLToPath(new URL('../../../templates', import.meta.url))

let files = 0
async function writePolicy(captcha: unknown): Promise<string> {
  files += 1
  const path = join(inject('runFolder'), `replayed-${process.pid}-${files}.yaml`)
  const file = {
    policies: { ...noLimits, captcha },
    templates,
    providers: { sandbox: { kind: 'sandbox' } },
    routes: { sms: [{ use: ['sandbox'] }], email: [{ use: ['sandbox'] }] },
  }
  await writeFile(path, stringify(file))
  return path
}
const perMinute = (limit: number) => [
  { name: 'recipient', key: '{app}:{channel}:{to}', sliding: `${limit} per 60s` },
]

test('replay: what a running API recorded, by another file; the same file changes nothing', async () => {
  const on = { redis: await testRedis(), database }
  const postern = await startPostern({
    on,
    policyFile: { policies: { ...noLimits, captcha: perMinute(2) } },
  })
  const to = '+8613800138000'
  const send = () => postern.post('/v1/captchas', { channel: 'sms', to })
  for (const status of [202, 202, 429, 429]) expect((await send()).status).toBe(status)
  const code = await postern.codeFor(to)
  await postern.post('/v1/captchas/check', { channel: 'sms', to, code })
  await postern.stop()

  const same = await policy('replay', '--policy', await writePolicy(perMinute(2)), '--json')
  expect(same).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(same.stdout)).toMatchObject({
    requests: 5,
    recipients: 1,
    oneOf: 1,
    changes: [],
  })

  const tight = await policy('replay', '--policy', await writePolicy(perMinute(1)), '--since', '1h')
  expect(tight.stdout).toMatch(/^5 requests of 1 recipients\.$/m)
  expect(tight.stdout).toMatch(/^captcha {2}recipient +2 → 3$/m)
  expect(tight.stdout).toMatch(/captcha: 1 admitted → refused, of 1 recipients: [0-9a-f]{8} \(1\)/)
  expect(tight.stdout).not.toMatch(/This is a sample|left out/)
  await database.pool.query('TRUNCATE decision')
})

test('replay: a record that is a sample, or that lacks recipients or policies, is reported as such', async () => {
  await database.pool.query(`
    INSERT INTO decision (at, app, channel, outcome, times, recipient_hash, policy, fields, share)
    VALUES (now(), 'web', 'sms', 'admitted', 1, '\\x00000000aa', 'captcha', '{}', 3),
           (now(), 'web', 'sms', 'admitted', 1, '\\xff000000aa', 'captcha', '{}', 2),
           (now(), 'web', 'sms', 'admitted', 1, '\\x00000000bb', 'other', '{}', 3),
           (now(), 'web', 'sms', 'refused', 9, NULL, 'captcha', NULL, 0)`)
  const { stdout } = await policy('replay', '--policy', await writePolicy(perMinute(1)))
  expect(stdout).toMatch(/^1 requests of 1 recipients\.$/m)
  expect(stdout).toMatch(/^This is a sample: 1 of 8 recipients.*underestimated/m)
  expect(stdout).toMatch(/^9 refusals and checks were only counted/m)
  expect(stdout).toMatch(/^Requests by other are left out: the file has no such policy\.$/m)
  await database.pool.query('TRUNCATE decision')
})

test('replay: no record is reported', async () => {
  const { code, stdout } = await policy('replay', '--policy', await writePolicy([]))
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'No requests were recorded in that time.\n' })
})

test('explain: the shipped file in words', async () => {
  const { code, stdout } = await policy('explain', '--policy', 'postern.yaml')
  expect(code).toBe(0)
  expect(stdout).toContain(
    'At most 1 per 60s, 5 per 1h and 10 per 24h for one recipient and one lane (known browsers or strangers) of one app; more are refused.',
  )
})

test.each([
  ['nothing', [], /^Usage:/],
  ['an unknown command', ['guess'], /^policy has no command "guess"[\s\S]*Usage:/],
  ['replay without a file', ['replay'], /^replay needs the changed file[\s\S]*Usage:/],
  ['two commands', ['explain', 'replay'], /^explain takes no "replay"[\s\S]*Usage:/],
  ['an unknown option', ['explain', '--colour'], /colour[\s\S]*Usage:/],
  [
    'explain with an option of replay',
    ['explain', '--json'],
    /^explain has no option --json\.[\s\S]*Usage:/,
  ],
  [
    'a time that is none',
    ['replay', '--policy', 'postern.yaml', '--since', 'yesterday'],
    /^"yesterday" is not/,
  ],
  ['a file that is not there', ['explain', '--policy', 'none.yaml'], /none\.yaml cannot be read/],
] as const)('policy with %s: code 1 and why', async (_, args, message) => {
  const { code, stdout, stderr } = await policy(...args)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(message)
})

test('policy with a file that has mistakes, or without PostgreSQL: code 1 and why', async () => {
  const wrong = await policy('explain', '--policy', await writePolicy([{ name: 'x', key: '{to}' }]))
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('exactly one of') })
  const file = await writePolicy([])
  const without = await runCommand('policy', ['replay', '--policy', file])
  expect(without).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('DATABASE_URL is not set'),
  })
  const away = await runCommand('policy', ['replay', '--policy', file], {
    DATABASE_URL: 'postgresql://127.0.0.1:1/none',
  })
  expect(away).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Failed: /) })
})

test('paperwork: names for the countries of the routes what is filed, what is missing and where, also in a file that would be refused', async () => {
  const path = join(inject('runFolder'), `paperwork-${process.pid}.yaml`)
  const file = {
    policies: noLimits,
    templates,
    providers: { phone: { kind: 'smpp', url: 'smpp://id:pw@localhost', from: 'ACME' } },
    senders: { phone: { IN: { entity: '1001' } } },
    routes: { sms: [{ match: { country: ['IN'] }, use: ['phone'] }] },
  }
  await writeFile(path, stringify(file))
  const { code, stdout } = await policy('paperwork', '--policy', path)
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(
      /^India \(IN\), phone\n {2}filed +business +1001\n {2}missing +sender +.*https:/,
    ),
  ])
})
