/**
 * A server may fail at every await of a send and of a check (I23). The n-th call of a request to Redis or PostgreSQL
 * fails, for every n, in four ways.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterEach, expect, test, vi } from 'vitest'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createLimiter } from '../../src/limiter/index.ts'
import { newPhone, otherThan } from '../tools/people.ts'
import { type Reply, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'

const SECRET = 'a secret of the walk, of thirty-two bytes or more'
const policies = {
  captcha: [{ name: 'recipient', key: '{channel}:{to}', sliding: '100 per 1h' }],
  notice: [{ name: 'recipient', key: '{channel}:{to}', sliding: '100 per 1h' }],
  check: [
    { name: 'guesses', key: '{channel}:{to}', lockout: { limit: 50, window: '1h', lock: '1h' } },
    { name: 'all', key: '{to}', sliding: '200 per 1h' },
  ],
}
const postern = await startPostern({
  roles: { api: true, worker: false },
  env: { SECRET },
  policyFile: { policies },
  patience: 0,
})
const secrets = createSecrets(SECRET)
/** Reads the same counts. */
const limiter = createLimiter({
  policies,
  redis: postern.redis.client,
  keyPrefix: postern.redis.prefix,
  subjectKey: secrets.limiterKey,
})

/** Calls that were under way when their caller stopped waiting. */
const underWay: Promise<unknown>[] = []

const ways = {
  /** The call never arrives. */
  never: (_carryOut: () => Promise<unknown>) => Promise.reject(new Error('Connection is closed.')),
  /** The call is carried out, and its answer is lost. */
  lost: async (carryOut: () => Promise<unknown>) => {
    await carryOut()
    throw new Error('Connection is closed.')
  },
  /** The call is carried out after its caller has stopped waiting. */
  late: (carryOut: () => Promise<unknown>) => {
    const carried = new Promise((resolve) => setTimeout(resolve, 300)).then(carryOut)
    underWay.push(carried.catch(() => {}))
    return Promise.reject(new Error('Command timed out'))
  },
  /** After this call both servers are away for a while, so that nothing can be given back at once. */
  away: (_carryOut: () => Promise<unknown>) => Promise.reject(new Error('Connection is closed.')),
}
type Way = keyof typeof ways

/** The number of the call that fails, and its name. */
let failing: { at: number; way: Way; calls: number; what: string } | undefined
const awayMs = 300

/** `isForward`: a call of the request itself. Other calls give something back, and continue after the answer. */
function passOn(
  what: string,
  isForward: boolean,
  carryOut: () => Promise<unknown>,
): Promise<unknown> {
  if (!failing) return carryOut()
  if (failing.what !== '' && failing.way === 'away') return ways.away(carryOut)
  if (!isForward || failing.what !== '' || failing.calls++ !== failing.at) return carryOut()
  failing.what = what
  return ways[failing.way](carryOut)
}

const sendCommand = Redis.prototype.sendCommand
vi.spyOn(Redis.prototype, 'sendCommand').mockImplementation(function (
  this: Redis,
  ...[command, stream]: Parameters<typeof sendCommand>
) {
  const carryOut = () => sendCommand.call(this, command, stream) as Promise<unknown>
  const args = command.args.map(String)
  const [, , key = ''] = args
  // Without the queue, the probe of readiness, the records for support, and commands of this file.
  const isAside = /:(ready|history)/.test(key)
  const isOurs = /^(eval|del)/i.test(command.name) && !key.startsWith('{') && !isAside
  if (!isOurs || this === postern.redis.client) return carryOut()
  const isForward = key.includes(':code:')
    ? args.some((arg) => /^(remember|settle|guess)$/.test(arg))
    : !args.some((arg) => arg.endsWith(':reset'))
  return passOn(key, isForward, carryOut)
})
const query = pg.Pool.prototype.query as (...args: unknown[]) => Promise<unknown>
vi.spyOn(pg.Pool.prototype, 'query').mockImplementation(function (
  this: pg.Pool,
  ...args: unknown[]
) {
  const [{ name = '' } = {}] = args as [{ name?: string }]
  const carryOut = () => query.apply(this, args)
  const isOurs = /^(notice|idempotency)/.test(name) && this !== postern.database.pool
  const isForward = /^(notice-create|idempotency-(reserve|keep))$/.test(name)
  return isOurs ? passOn(name, isForward, carryOut) : carryOut()
} as never)
afterEach(() => {
  failing = undefined
})

const send = (to: string, headers = {}) =>
  postern.post('/v1/captchas', { channel: 'sms', to }, { headers })
const check = (to: string, code: string) =>
  postern.post('/v1/captchas/check', { channel: 'sms', to, code })

/** Notices of a person that were made and not closed again. */
async function openNotices(to: string): Promise<string[]> {
  const { rows } = await postern.database.pool.query(
    "SELECT id FROM notice WHERE recipient = $1 AND state <> 'failed' ORDER BY id",
    [to],
  )
  return rows.map(({ id }) => id)
}

/** The code in a notice, as a worker unseals it. */
async function codeOf(id: string): Promise<string> {
  const { rows } = await postern.database.pool.query(
    'SELECT sealed_params FROM notice WHERE id = $1',
    [id],
  )
  return JSON.parse(secrets.unseal(rows[0].sealed_params, id)).code
}

/** A person's codes in Redis: the current one, and a pending one. */
async function storedCodes(to: string): Promise<Record<string, unknown>[]> {
  const [hash] = secrets.subjectHashes(['default', 'sms', to])
  return JSON.parse((await postern.redis.client.get(`${postern.redis.prefix}code:${hash}`)) ?? '[]')
}

async function used(policy: string, to: string): Promise<number[]> {
  const windows = await limiter.peek(policy, { channel: 'sms', to })
  return windows.map((window) => window.used)
}

interface Walk<Facts> {
  prepare(): Promise<Facts>
  request(facts: Facts): Promise<Reply>
  /** The promises that must hold after the answer, and later. */
  holds(reply: Reply, facts: Facts, failed: string): Promise<void>
  /** The least number of calls of a request. */
  calls: number
}

/** Every call fails once. Afterwards the results of all are checked at once. */
async function walk<Facts>(way: Way, { prepare, request, holds, calls }: Walk<Facts>) {
  const outcomes: { reply: Reply; facts: Facts; what: string }[] = []
  let end = ''
  for (let at = 0; ; at++) {
    const facts = await prepare()
    failing = { at, way, calls: 0, what: '' }
    const reply = await request(facts)
    const { what } = failing
    if (way === 'away') await sleep(awayMs)
    failing = undefined
    if (what === '') {
      end = `the request without a failed call: ${reply.status}`
      if (reply.status !== 503) break
      // On a busy machine, a server may answer late before the call that is to fail.
      at -= 1
      continue
    }
    outcomes.push({ reply, facts, what })
  }
  expect(outcomes.length, end).toBeGreaterThanOrEqual(calls)
  expect(outcomes.some(({ reply }) => reply.status === 503)).toBe(true)
  await Promise.all(underWay.splice(0))
  const problems = await Promise.all(
    outcomes.map(({ reply, facts, what }, at) =>
      holds(reply, facts, what).then(
        () => '',
        (error) => `call ${at}, ${what}, ${reply.status}: ${error.message}`,
      ),
    ),
  )
  expect(problems.filter(Boolean)).toEqual([])
}

const everyWay = Object.keys(ways) as Way[]
/** A key whose request never answered stays reserved for 30 s. */
const inTime = { everyMs: 100, withinMs: 90_000 }

async function newPersonWithCode() {
  // A busy machine's servers may answer late.
  return eventually(async () => {
    const to = newPhone()
    const { status, body } = await send(to)
    return status === 202 && { to, firstId: body.id as string, code: await codeOf(body.id) }
  })
}

test.each(everyWay)(
  'a resend whose n-th call is %s: with 503 the code in the hand passes, the quota is back and nothing is sent; with 202 the new one alone passes (I23)',
  async (way) => {
    await walk(way, {
      calls: 3,
      prepare: newPersonWithCode,
      request: ({ to }) => send(to),
      async holds({ status, body }, { to, firstId, code }) {
        if (status === 202) {
          const next = await codeOf(body.id)
          await eventually(async () => {
            expect(await storedCodes(to)).toMatchObject([{ id: body.id, state: 'current' }])
          }, inTime)
          if (next !== code) expect((await check(to, code)).status).toBe(422)
          expect((await check(to, next)).status).toBe(200)
          return
        }
        expect(status).toBe(503)
        await eventually(async () => {
          expect(await used('captcha', to)).toEqual([1])
          expect(await openNotices(to)).toEqual([firstId])
        }, inTime)
        expect((await check(to, code)).body).toMatchObject({ verified: true, id: firstId })
      },
    })
  },
)

test.each(everyWay)(
  'a first send whose n-th call is %s: with 503 no code is there and the quota is back (I23)',
  async (way) => {
    await walk(way, {
      calls: 3,
      prepare: async () => ({ to: newPhone() }),
      request: ({ to }) => send(to),
      async holds({ status, body }, { to }) {
        if (status === 202) {
          expect((await check(to, await codeOf(body.id))).status).toBe(200)
          return
        }
        await eventually(async () => {
          expect(await used('captcha', to)).toEqual([0])
          expect(await openNotices(to)).toEqual([])
          expect((await check(to, '0000')).status).toBe(410)
        }, inTime)
      },
    })
  },
)

let keys = 0
test.each(everyWay)(
  'a resend with an Idempotency-Key whose n-th call is %s: the repeat is accepted once, and until then the code in the hand passes (I23, I26)',
  async (way) => {
    await walk(way, {
      calls: 5,
      prepare: async () => {
        keys += 1
        return { ...(await newPersonWithCode()), headers: { 'idempotency-key': `walk-${keys}` } }
      },
      request: ({ to, headers }) => send(to, headers),
      async holds({ status }, { to, firstId, headers }) {
        expect([202, 503]).toContain(status)
        const { body } = await eventually(async () => {
          const repeat = await send(to, headers)
          // The answer may not be written yet. Then the key stays reserved for 30 s.
          if (status === 202 && repeat.status === 409) return { body: undefined }
          return repeat.status === 202 && repeat
        }, inTime)
        await eventually(async () => {
          const open = await openNotices(to)
          expect(open).toHaveLength(2)
          expect(open[0]).toBe(firstId)
          if (body) expect(open[1]).toBe(body.id)
          expect(await used('captcha', to)).toEqual([2])
        }, inTime)
        const [, next = ''] = await openNotices(to)
        await eventually(async () => {
          expect(await storedCodes(to)).toMatchObject([{ id: next, state: 'current' }])
        }, inTime)
        expect((await check(to, await codeOf(next))).status).toBe(200)
      },
    })
  },
)

test.each(everyWay)(
  'a notice whose n-th call is %s: with 503 it is not sent and the quota is back (I23)',
  async (way) => {
    await walk(way, {
      calls: 2,
      prepare: async () => ({ to: newPhone() }),
      request: ({ to }) =>
        postern.post('/v1/notices', {
          channel: 'sms',
          to,
          template: 'welcome',
          params: { name: 'Ada' },
        }),
      async holds({ status }, { to }) {
        const count = status === 202 ? 1 : 0
        await eventually(async () => {
          expect(await used('notice', to)).toEqual([count])
          expect(await openNotices(to)).toHaveLength(count)
        }, inTime)
      },
    })
  },
)

test.each(everyWay)(
  'a right check whose n-th call is %s: with 503 the code passes afterwards, once, and the guess is not counted (I23)',
  async (way) => {
    await walk(way, {
      calls: 2,
      prepare: newPersonWithCode,
      request: ({ to, code }) => check(to, code),
      async holds({ status }, { to, code }) {
        if (status !== 200) {
          expect(status).toBe(503)
          await eventually(async () => expect(await used('check', to)).toEqual([0, 0]), inTime)
          await eventually(async () => (await check(to, code)).status === 200, inTime)
        }
        expect((await check(to, code)).status).toBe(410)
      },
    })
  },
)

test.each(everyWay)(
  'a wrong check whose n-th call is %s: with 503 no try is used up and the guess is not counted (I23)',
  async (way) => {
    await walk(way, {
      calls: 2,
      prepare: newPersonWithCode,
      request: ({ to, code }) => check(to, otherThan(code)),
      async holds({ status }, { to, code }) {
        expect(status).toBe(503)
        await eventually(async () => expect(await used('check', to)).toEqual([0, 0]), inTime)
        await eventually(async () => {
          expect(await storedCodes(to)).toMatchObject([{ tries: 3, state: 'current', takers: ',' }])
        }, inTime)
        expect((await check(to, otherThan(code))).body).toMatchObject({ triesLeft: 2 })
        expect((await check(to, code)).status).toBe(200)
      },
    })
  },
)
