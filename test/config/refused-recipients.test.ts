/** `recipients.refuse`: in the policy file, in files beside it, and read again by a reload. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { readRefused } from '../../src/config/refused-recipients.ts'
import { start } from '../../src/main/compose.ts'
import { createSectionChecks, loadConfig } from '../../src/main/load-config.ts'
import { testDatabase } from '../tools/database.ts'
import { clientOf, noLimits, posternEnv, startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const folder = mkdtempSync(join(inject('runFolder'), 'refused-'))
const { readMailbox } = createSectionChecks()
const read = (...entries: string[]) => readRefused(entries, folder, (to) => readMailbox(to, 'CN'))

test('numbers and addresses in any spelling become their normal form, each once', async () => {
  const { list, found } = await read('+86 138 0013 8000', '13800138000', 'Ada@EXAMPLE.com')
  expect([[...list], found]).toEqual([['+8613800138000', 'ada@example.com'], []])
})

test('a file: one a line, with comments, empty lines, CRLF and a byte order mark', async () => {
  mkdirSync(join(folder, 'lists'), { recursive: true })
  writeFileSync(
    join(folder, 'lists/a.txt'),
    '\uFEFF+8613800138001\r\n\r\n# reported\r\n  bob@example.com  \r\n',
  )
  const { list, found } = await read('./lists/a.txt', join(folder, 'lists/a.txt'))
  expect([[...list], found]).toEqual([['+8613800138001', 'bob@example.com'], []])
})

test('what is no recipient is reported with its place: in the list, in the file, a file that is not there', async () => {
  writeFileSync(join(folder, 'b.txt'), '+8613800138001\nnobody\n')
  const { found } = await read('ada', './b.txt', './none.txt')
  const message = 'is neither a phone number nor a mail address'
  expect(found).toEqual([
    { path: ['recipients', 'refuse', 0], message },
    { path: ['recipients', 'refuse', 1], message: `${join(folder, 'b.txt')}:2 ${message}` },
    {
      path: ['recipients', 'refuse', 2],
      message: `${join(folder, 'none.txt')} cannot be read (ENOENT)`,
    },
  ])
  writeFileSync(join(folder, 'c.txt'), 'x\n'.repeat(100_000))
  expect((await read('./c.txt')).found).toHaveLength(20)
  writeFileSync(join(folder, 'd.txt'), '#'.repeat(16_777_217))
  expect((await read('./d.txt')).found[0]?.message).toMatch(/cannot be read \(above 16 MB\)$/)
})

test('a long file: the process goes on with other work while it is read', async () => {
  const numbers = Array.from({ length: 20_000 }, (_, at) => `+86138${10_000_000 + at}`)
  writeFileSync(join(folder, 'long.txt'), numbers.join('\n'))
  let turns = 0
  let isRead = false
  const otherWork = (async () => {
    for (; !isRead; turns++) await turn()
  })()
  const { list } = await read('./long.txt')
  isRead = true
  await otherWork
  expect([...list]).toEqual(numbers)
  expect(turns).toBeGreaterThan(10)
})

test('403 with the reason, for sends and checks; a reload refuses others at once, and what waits for them is not sent', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const file = join(folder, 'live.txt')
  writeFileSync(file, '+8613800138005\n')
  const policyFile = { policies: noLimits, recipients: { refuse: [file, 'eve@example.com'] } }
  const env = posternEnv({ redis, database, policyFile })
  const configNow = async () => {
    const loaded = await loadConfig(env)
    return loaded.ok ? loaded.config : expect.unreachable()
  }
  const startRole = async (role: 'api' | 'worker') => {
    const roles = { api: role === 'api', worker: role === 'worker' }
    const options = { keyPrefix: redis.prefix, quietMs: 0 }
    const running = closeLater(await start(await configNow(), roles, options))
    return running
  }
  const running = await startRole('api')
  const { post, get } = clientOf(
    running.addresses.api as string,
    env.BOOTSTRAP_SECRET_KEY as string,
  )
  const ids: string[] = []
  const send = async (to: string) => {
    const channel = to.includes('@') ? 'email' : 'sms'
    const { status, body } = await post('/v1/captchas', { channel, to })
    if (status === 202) ids.push(body.id)
    return [status, body.reason]
  }
  expect(await send('+86 138-0013-8005')).toEqual([403, 'refused'])
  expect(await send('EVE@example.com')).toEqual([403, 'refused'])
  expect(await send('+8613800138006')).toEqual([202, undefined])
  expect(await send('bob+news@example.com')).toEqual([202, undefined])
  const check = { channel: 'sms', to: '+8613800138005', code: '1234' }
  expect((await post('/v1/captchas/check', check)).body).toMatchObject({ reason: 'refused' })

  writeFileSync(file, '+8613800138006\nbob@example.com\n')
  expect(running.reload(await configNow())).toEqual({ reloaded: ['recipients'], needRestart: [] })
  expect(await send('+8613800138005')).toEqual([202, undefined])
  expect(await send('+8613800138006')).toEqual([403, 'refused'])
  expect(await send('eve@example.com')).toEqual([403, 'refused'])

  await startRole('worker')
  await eventually(async () => {
    const ends = ids.map(async (id) => (await get(`/v1/notices/${id}`)).body)
    const refused = { state: 'failed', error: 'invalid_recipient', attempts: [] }
    expect(await Promise.all(ends)).toMatchObject([refused, refused, { state: 'sent' }])
  })
})

test('a refused address is its whole mailbox: tags, and dots where the provider ignores them', async () => {
  const refuse = ['eve@example.com', 'm.allory+old@gmail.com']
  const { post } = await startPostern({
    policyFile: { policies: noLimits, recipients: { refuse } },
    roles: { api: true, worker: false },
  })
  const statusOf = async (to: string) =>
    (await post('/v1/captchas', { channel: 'email', to })).status
  for (const to of ['eve+1@example.com', 'EVE+a.b@EXAMPLE.com', 'mallory@googlemail.com']) {
    expect([to, await statusOf(to)]).toEqual([to, 403])
  }
  for (const to of ['e.ve@example.com', 'eve@sub.example.com', 'mallory2@gmail.com']) {
    expect([to, await statusOf(to)]).toEqual([to, 202])
  }
})
