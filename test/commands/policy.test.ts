import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, inject, test } from 'vitest'
import { stringify } from 'yaml'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { sampleKey } from '../../src/support/record.ts'
import { createRecorder } from '../../src/support/recorder.ts'
import { testDatabase } from '../tools/database.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { runCommand } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'

/** The secret of the processes: the command has no other one. */
const keyPrefix = 'postern:'
const redis = { ...(await testRedis()), prefix: keyPrefix }
const env = { REDIS_URL: redis.url }
const policy = (...args: string[]) => runCommand('policy', args, env)
const templates = fileURLToPath(new URL('../../templates', import.meta.url))

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
  const database = await testDatabase()
  const postern = await startPostern({
    on: { redis, database },
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
  expect(tight.stdout).toMatch(/^5 requests of 1 recipients, /)
  expect(tight.stdout).toMatch(/^captcha {2}recipient +2 → 3$/m)
  expect(tight.stdout).toMatch(/captcha: 1 admitted → refused, of 1 recipients: [\w-]{8} \(1\)/)
  expect(tight.stdout).not.toContain('This is a sample')
  await redis.client.del(sampleKey(keyPrefix))
})

test('replay: a record that was sampled says so', async () => {
  const recorder = createRecorder({
    redis: await redis.connect(),
    secrets: createSecrets('a secret of at least thirty-two bytes'),
    keyPrefix,
    policies: () => ({}),
    codeTtlMs: 300_000,
    onDropped: () => {},
    sampleLimits: { maxPerTurn: 10 },
  })
  for (let index = 0; index < 200; index++) {
    const fields = { to: `+86138001${10_000 + index}`, app: 'web', channel: 'sms', country: 'CN' }
    const decision = { admitted: true, remaining: [], nextInMs: 0 } as const
    const requestId = `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`
    recorder.decided({ policy: 'captcha', fields, requestId, decision, isSolved: true })
  }
  await recorder.close()
  const { stdout } = await policy('replay', '--policy', await writePolicy(perMinute(1)))
  expect(stdout).toMatch(/^This is a sample: 1 of \d+ recipients/m)
  await redis.client.del(sampleKey(keyPrefix))
})

test('replay: nothing recorded is said', async () => {
  const { code, stdout } = await policy('replay', '--policy', await writePolicy([]))
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'No requests were recorded in that time.\n' })
})

test('explain: the shipped file in words', async () => {
  const { code, stdout } = await policy('explain', '--policy', 'postern.yaml')
  expect(code).toBe(0)
  expect(stdout).toContain(
    'At most 1 per 60s, 5 per 1h and 10 per 24h for one recipient of one app; more are refused.',
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
    /^--since and --json are options of replay[\s\S]*Usage:/,
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

test('policy with a file that has mistakes, or without Redis: code 1 and why', async () => {
  const wrong = await policy('explain', '--policy', await writePolicy([{ name: 'x', key: '{to}' }]))
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('exactly one of') })
  const file = await writePolicy([])
  const without = await runCommand('policy', ['replay', '--policy', file])
  expect(without).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('REDIS_URL is not set'),
  })
  const away = await runCommand('policy', ['replay', '--policy', file], {
    REDIS_URL: 'redis://127.0.0.1:1',
  })
  expect(away).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Failed: /) })
})
