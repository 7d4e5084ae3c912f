import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createCodeStore } from '../../src/captcha/code-store.ts'
import { createSendCaptcha } from '../../src/captcha/send.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createLimiter, type RawPolicies } from '../../src/limiter/index.ts'
import { checkedPolicies } from '../../src/limiter/policy/parse.ts'
import type { CreatedNotice, Params, PreparedNotice } from '../../src/notice/create.ts'
import type { Accepted, SendOutcome } from '../../src/notice/message.ts'
import type { OncePerKey } from '../../src/notice/once-per-key.ts'
import { createPipeline } from '../../src/notice/pipeline.ts'
import { createSendNotice } from '../../src/notice/send.ts'
import type { NoticeStore } from '../../src/notice/store.ts'
import type { Origin } from '../../src/rules/caller.ts'
import { createGuessLimits } from '../../src/rules/guess-limits.ts'
import { createQuota } from '../../src/rules/quota.ts'
import { noKnownBrowsers } from '../tools/no-known-browsers.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const server = await testRedis()
const secrets = createSecrets('the first secret, of thirty-two bytes or more')
const createdAt = new Date(Date.UTC(2026, 10, 22, 12))

const testRecipient = '+15005550006'

let roomCount = 0
async function openRoom(
  rules: RawPolicies[string] = [{ name: 'r', key: '{to}', sliding: '2 per 60s' }],
) {
  roomCount += 1
  const keyPrefix = `${server.prefix}${roomCount}:`
  const redis = await server.connect('limiter')
  const limiter = createLimiter({
    policies: { captcha: rules, notice: rules, browser: [{ include: 'captcha' }] },
    redis,
    keyPrefix,
    deadlineMs: 2_000,
  })
  releaseLater(() => limiter.close())
  const codes = createCodeStore(await server.connect('code'), secrets, {
    keyPrefix,
    ttlMs: 290_000,
    triesPerCode: 3,
  })
  releaseLater(() => codes.close())
  const quota = createQuota({
    limiter,
    dedupeHash: secrets.dedupeHash,
    priceOf: () => 60,
    isTestRecipient: () => false,
    policies: () => checkedPolicies({ captcha: rules, notice: rules }),
  })
  const made: { notice: PreparedNotice; params: Params; timeoutMs: number }[] = []
  /** The work of PostgreSQL. It may read what Redis has stored by then. */
  let commit: (notice: PreparedNotice, params: Params) => Promise<void> = async () => {}
  let adopted: { createdAt: Date; expiresAt: Date; isOpen: boolean } | null = null
  let isReached = true
  const createNotice = async (
    notice: PreparedNotice,
    params: Params,
    timeoutMs: number,
  ): Promise<CreatedNotice> => {
    await commit(notice, params)
    made.push({ notice, params, timeoutMs })
    return { ...notice, createdAt, expiresAt: new Date(createdAt.getTime() + notice.ttlMs) }
  }
  const store = { adopt: async () => adopted } as unknown as NoticeStore
  const code = { length: 6, ttlMs: 290_000, own: false }
  const policies = () => checkedPolicies({ captcha: rules })
  const canReach = async () => isReached
  const waits = { ms: 0 }
  const guessLimits = {
    ...createGuessLimits({ quota, limiter, policies }),
    waitMsOf: async () => {
      if (waits.ms < 0) throw new Error('away')
      return waits.ms
    },
  }
  let country = ''
  const ended: (string | undefined)[] = []
  const begun: string[] = []
  const returned: string[] = []
  const answered = new Set<string>()
  const deps = {
    readMessage: (_: unknown, { to, params }: { to: string; params: Params }) => ({
      ...{ to, country, locale: 'en', params, providers: [] },
    }),
    // The key of a request is its notice's id.
    oncePerKey: {
      answerBy: () => performance.now() + 2_000,
      isNew: async (key: string) => !answered.has(key),
      async begin(_, { idempotencyKey }) {
        const id: string = idempotencyKey ?? ''
        begun.push(id)
        if (answered.has(id)) return { outcome: 'accepted', id } as Accepted
        return {
          earlierId: adopted ? id : undefined,
          newId: async () => id,
          end: async (outcome) => void ended.push(outcome?.outcome),
        }
      },
    } satisfies OncePerKey,
    quota,
    createNotice,
    store,
    canReach,
    nowMs: () => createdAt.getTime(),
  }
  const { send } = createPipeline(deps)
  const sendCaptcha = createSendCaptcha({
    ...{ ...deps, send },
    challenges: {
      enter: async () => ({ isHuman: true, giveBack: () => void returned.push('challenge') }),
      refuse: async (_, limited) => limited,
    },
    testRecipients: { codeOf: (to) => (to === testRecipient ? '004242' : undefined) },
    known: noKnownBrowsers,
    codes,
    code,
    links: new Map([['signup', 'https://shop.example/verify']]),
    guessLimits,
  })
  const sendNotice = createSendNotice({ ...deps, send, ttlMs: 86_400_000 })
  function askedBy({ id, app, origin, ...asked }: Request) {
    country = origin.country
    const caller = { ...origin, app, origins: [] }
    return [{ ...asked, idempotencyKey: id }, caller] as const
  }
  return {
    /** The outcome that each request stored for its key; undefined if the request failed. */
    ended,
    /** Requests whose key was reserved. */
    begun,
    /** Challenges that were given back. */
    returned,
    /** True if the request of this key was accepted. */
    answered,
    codes,
    made,
    /** Milliseconds for which no check passes. Below 0: Redis does not know. */
    locks: (ms: number) => {
      waits.ms = ms
    },
    sendCaptcha: (request: Request) => sendCaptcha(...askedBy(request)),
    sendNotice: (request: Omit<Request, 'scene'> & { ttl?: number; sendAt?: string }) =>
      sendNotice(...askedBy({ scene: '', ...request })),
    onCommit: (work: typeof commit) => {
      commit = work
    },
    reaches: (is: boolean) => {
      isReached = is
    },
    adopts: (row: typeof adopted) => {
      adopted = row
    },
    used: async (request: Request) => {
      const { to, channel, scene, app, template, origin } = request
      const { ip, country } = origin
      const fields = { to, channel, scene, app, template, dedupe: '', ip, ipWide: ip, country }
      return (await limiter.peek('captcha', fields)).map((state) => state.used)
    },
  }
}

interface Request {
  /** The id of the notice. */
  id: string
  app: string
  channel: 'sms' | 'email'
  to: string
  scene: string
  template: string
  params: Params
  origin: Origin
}

let recipientCount = 0
function request(over: Partial<Request> = {}): Request {
  recipientCount += 1
  return {
    id: newId(),
    app: 'shop',
    channel: 'sms',
    to: `+86138003${String(recipientCount).padStart(5, '0')}`,
    scene: 'login',
    template: 'captcha',
    params: { name: 'Ada' },
    origin: { ip: '203.0.113.1', country: 'CN', keyId: 'key', isPage: false },
    ...over,
  }
}

const resendAtOf = (sent: SendOutcome) =>
  sent.outcome === 'accepted' ? Date.parse(sent.resendAt) : expect.unreachable()

test('a send: the notice has the code that passes, its minutes rounded up, and the caller’s variables', async () => {
  const { sendCaptcha, made, codes } = await openRoom()
  const asked = request()
  const outcome = await sendCaptcha(asked)
  expect(outcome).toMatchObject({
    outcome: 'accepted',
    id: asked.id,
    to: '+8613****0001',
    scene: 'login',
    codeLength: 6,
    expiresAt: new Date(createdAt.getTime() + 290_000).toISOString(),
    resendAt: createdAt.toISOString(),
  })
  const [{ notice, params, timeoutMs }] = made as [(typeof made)[0]]
  expect(notice).toMatchObject({ id: asked.id, to: asked.to, app: 'shop', kind: 'captcha' })
  expect(params).toEqual({
    name: 'Ada',
    code: expect.stringMatching(/^\d{6}$/),
    minutes: 5,
    validity: '4 minutes',
  })
  expect(timeoutMs).toBeGreaterThan(0)
  expect(timeoutMs).toBeLessThanOrEqual(2_000)
  expect(await codes.guess(asked, String(params.code))).toEqual({
    result: 'passed',
    noticeId: asked.id,
  })
})

test('a scene with a link → the message has it: the page, and the code with its id in the fragment', async () => {
  const { sendCaptcha, made } = await openRoom()
  const asked = { ...request(), scene: 'signup' }
  await sendCaptcha(asked)
  const [{ params }] = made as [(typeof made)[0]]
  expect(params.link).toBe(`https://shop.example/verify#postern-code=${params.code}&id=${asked.id}`)
})

test('a recipient that can’t be reached: refused after the limits, nothing is made and the quota is back', async () => {
  const { sendCaptcha, sendNotice, made, used, reaches } = await openRoom()
  reaches(false)
  const asked = request()
  const refused = { outcome: 'invalid_recipient', because: 'no_server' }
  expect(await sendCaptcha(asked)).toEqual(refused)
  expect(await sendNotice(asked)).toEqual(refused)
  expect(made).toEqual([])
  await eventually(async () => expect(await used(asked)).toEqual([0]))
})

test('the code is drawn, also if the caller sets a variable of that name', async () => {
  const { sendCaptcha, made, codes } = await openRoom()
  const asked = request({ params: { code: '0000', minutes: 99 } })
  await sendCaptcha(asked)
  const { params } = made[0] as (typeof made)[0]
  expect(params).toEqual({
    code: expect.stringMatching(/^\d{6}$/),
    minutes: 5,
    validity: '4 minutes',
  })
  expect(await codes.guess(asked, String(params.code))).toMatchObject({ result: 'passed' })
})

test('resendAt: when the limits admit the same request again, counted from the row', async () => {
  const { sendCaptcha } = await openRoom([{ name: 'r', key: '{to}', sliding: '1 per 60s' }])
  const outcome = await sendCaptcha(request())
  const waitMs = resendAtOf(outcome) - createdAt.getTime()
  expect(waitMs).toBe(60_000)
})

test('a refusal costs nothing: no notice, no code, and the code in the hand still passes', async () => {
  const { sendCaptcha, made, codes, used } = await openRoom()
  const asked = request()
  await sendCaptcha(asked)
  await sendCaptcha({ ...asked, id: newId() })
  const code = String(made[1]?.params.code)
  for (let again = 0; again < 3; again++) {
    expect(await sendCaptcha({ ...asked, id: newId() })).toMatchObject({
      outcome: 'limited',
      policy: 'captcha',
      rule: 'r',
    })
  }
  expect(made).toHaveLength(2)
  expect(await used(asked)).toEqual([2])
  expect(await codes.guess(asked, code)).toMatchObject({ result: 'passed' })
})

test('the code before it passes until the commit, the new one after it', async () => {
  const { sendCaptcha, made, codes, onCommit } = await openRoom()
  const asked = request()
  await sendCaptcha(asked)
  const first = String(made[0]?.params.code)
  const during: unknown[] = []
  onCommit(async (_, params) => {
    during.push(await codes.guess(asked, String(params.code)))
  })
  await sendCaptcha({ ...asked, id: newId() })
  const second = String(made[1]?.params.code)
  if (first !== second) expect(during).toEqual([{ result: 'mismatch', triesLeft: 2 }])
  expect(await codes.guess(asked, second)).toMatchObject({ result: 'passed' })
})

test('the commit fails: the quota is back, the new code is gone, and the one before it passes (I23)', async () => {
  const { sendCaptcha, made, codes, onCommit, used } = await openRoom()
  const asked = request()
  await sendCaptcha(asked)
  const first = String(made[0]?.params.code)
  let lost = ''
  onCommit(async (_, params) => {
    lost = String(params.code)
    throw new Error('away')
  })
  await expect(sendCaptcha({ ...asked, id: newId() })).rejects.toThrow('away')
  await eventually(async () => expect(await used(asked)).toEqual([1]))
  if (lost !== first) {
    expect(await codes.guess(asked, lost)).toMatchObject({ result: 'mismatch' })
  }
  expect(await codes.guess(asked, first)).toMatchObject({ result: 'passed' })
  // Where there was no code before, there is none afterwards.
  const other = request()
  await expect(sendCaptcha(other)).rejects.toThrow('away')
  await eventually(async () => expect(await codes.settle(other, other.id)).toBe('lost'))
  expect(await codes.guess(other, lost)).toMatchObject({ result: 'gone' })
})

test('an earlier request’s notice is there and open, but its code is not: this one makes its own', async () => {
  const { sendCaptcha, codes, adopts, made, used } = await openRoom()
  const asked = request()
  const expiresAt = new Date(createdAt.getTime() + 290_000)
  adopts({ createdAt, expiresAt, isOpen: true })
  expect(await sendCaptcha(asked)).toMatchObject({ outcome: 'accepted' })
  expect([made.length, await used(asked)]).toEqual([1, [1]])

  const other = request()
  await codes.remember({ ...other }, other.id, '123456')
  expect(await sendCaptcha(other)).toMatchObject({
    outcome: 'accepted',
    id: other.id,
    scene: 'login',
    expiresAt: expiresAt.toISOString(),
  })
  expect([made.length, await used(other)]).toEqual([1, [0]])
})

test('an earlier request’s notice was sent: it is the answer, also without its code; resendAt comes from the limits', async () => {
  const room = await openRoom([
    { name: 'r', key: '{to}', sliding: '1 per 60s' },
    { name: 'observed', key: '{to}', sliding: '1 per 24h', mode: 'observe' },
    { name: 'human', key: '{to}', sliding: '1 per 1h', mode: 'challenge' },
  ])
  const asked = request()
  await room.sendCaptcha(asked)
  room.adopts({ createdAt, expiresAt: createdAt, isOpen: false })
  // PostgreSQL's time is `createdAt`, also when the process has another one.
  const waitMs = resendAtOf(await room.sendCaptcha({ ...asked, id: newId() })) - createdAt.getTime()
  expect(waitMs).toBeGreaterThan(50_000)
  expect(waitMs).toBeLessThanOrEqual(60_000)
  // The same for a notice, and neither made a second message.
  expect(resendAtOf(await room.sendNotice({ ...asked, id: newId() }))).toBe(createdAt.getTime())
  expect(room.made).toHaveLength(1)
})

test('the outcome of a request is stored with its key: accepted, refused or failed', async () => {
  for (const send of ['sendCaptcha', 'sendNotice'] as const) {
    const room = await openRoom([{ name: 'r', key: '{to}', sliding: '1 per 60s' }])
    const asked = request()
    await room[send](asked)
    await room[send]({ ...asked, id: newId() })
    room.onCommit(() => Promise.reject(new Error('away')))
    await expect(room[send](request())).rejects.toThrow('away')
    expect(room.ended).toEqual(['accepted', 'limited', undefined])
  }
})

test('a page that is known to be refused: refused from memory, its key is not reserved; a known key belongs to a repeat', async () => {
  const room = await openRoom([{ name: 'r', key: '{to}', sliding: '1 per 60s' }])
  const origin = { ...request().origin, isPage: true }
  const asked = request({ origin })
  const send = (id: string, more = {}) => room.sendCaptcha({ ...asked, ...more, id })
  await send('first')
  // The first refusal comes from Redis. Later ones come from this process' memory.
  expect(await send('refused')).toMatchObject({ outcome: 'limited', policy: 'captcha', rule: 'r' })
  expect(await send('again')).toMatchObject({ outcome: 'limited', policy: 'captcha', rule: 'r' })
  expect(room.begun).toEqual(['first', 'refused'])
  room.answered.add('repeat')
  expect(await send('repeat')).toEqual({ outcome: 'accepted', id: 'repeat' })
  // Another recipient is not refused, and for a server the order of checks is the usual one.
  expect(await send('other', { to: '+8613800399999' })).toMatchObject({ outcome: 'accepted' })
  await send('server', { origin: { ...origin, isPage: false } })
  expect(room.begun).toEqual(['first', 'refused', 'repeat', 'other', 'server'])
})

test('a test recipient: its own code, settled at once, and nothing comes back to the limits when it passes', async () => {
  const rule = { name: 'r', key: '{to}', sliding: '2 per 60s', refund: 'passed' } as const
  const { sendCaptcha, codes } = await openRoom([rule])
  const asked = request({ to: testRecipient })
  await sendCaptcha(asked)
  expect(await codes.guess(asked, '004242')).toEqual({ result: 'passed', noticeId: asked.id })
})

test('a notice ahead of time: at most 7 days, and a time that has passed is now', async () => {
  const { sendNotice, made } = await openRoom()
  const at = (ms: number) => new Date(createdAt.getTime() + ms).toISOString()
  const weekMs = 7 * 86_400_000
  await sendNotice({ ...request(), sendAt: at(weekMs) })
  await sendNotice({ ...request(), sendAt: at(-1) })
  expect(made.map(({ notice }) => notice.sendAt?.toISOString())).toEqual([at(weekMs), undefined])
  expect(await sendNotice({ ...request(), sendAt: at(weekMs + 1) })).toMatchObject({
    outcome: 'invalid_request',
    errors: [{ path: 'sendAt' }],
  })
})

test('rules may count by each field of a request, and by the whole content', async () => {
  const fields = ['to', 'channel', 'scene', 'app', 'ip', 'country', 'template', 'dedupe']
  for (const field of fields) {
    const { sendCaptcha } = await openRoom([{ name: 'r', key: `{${field}}`, sliding: '1 per 1h' }])
    const asked = request()
    const send = async (over: Partial<Request> = {}) =>
      (await sendCaptcha({ ...asked, ...over, id: newId() })).outcome === 'accepted'
    expect(await send()).toBe(true)
    expect(await send()).toBe(false)
    const others: Record<string, Partial<Request>> = {
      to: { to: '+8613700137000' },
      channel: { channel: 'email' },
      scene: { scene: 'payment' },
      app: { app: 'bank' },
      ip: { origin: { ...asked.origin, ip: '203.0.113.9' } },
      country: { origin: { ...asked.origin, country: 'DE' } },
      template: { template: 'other' },
      dedupe: { params: { name: 'Eve' } },
    }
    for (const [changed, over] of Object.entries(others)) {
      // Content is channel, recipient, template and variables. A change in any of them makes another message.
      const counts =
        changed === field || (field === 'dedupe' && ['channel', 'to', 'template'].includes(changed))
      if (counts) expect(await send(over), `${field}: another ${changed}`).toBe(true)
      else expect(await send(over), `${field}: the same, ${changed} aside`).toBe(false)
    }
  }
})

test('content: variables in any order, numbers as their text; another name or value is another message', async () => {
  const { sendCaptcha } = await openRoom([{ name: 'r', key: '{dedupe}', fixed: '1 per 60s' }])
  const asked = request({ params: { name: 'Ada', order: 7 } })
  const send = async (params: Params) =>
    (await sendCaptcha({ ...asked, params, id: newId() })).outcome === 'accepted'
  expect(await send({ name: 'Ada', order: 7 })).toBe(true)
  expect(await send({ order: '7', name: 'Ada' })).toBe(false)
  expect(await send({ name: 'Ada', order: 8 })).toBe(true)
  expect(await send({ name: 'Ada', orders: 7 })).toBe(true)
  expect(await send({ name: 'Ada' })).toBe(true)
  expect(await send({ name: 'Ada', order: 8 })).toBe(false)
})

test('a notice: its own policy, its default time, its variables as they were given', async () => {
  const { sendNotice, made, onCommit, used } = await openRoom()
  const { scene, ...asked } = request()
  const outcome = await sendNotice(asked)
  expect(outcome).toMatchObject({
    outcome: 'accepted',
    template: 'captcha',
    resendAt: createdAt.toISOString(),
  })
  expect(made[0]?.notice).toMatchObject({ kind: 'notice', ttlMs: 86_400_000 })
  expect(made[0]?.params).toEqual({ name: 'Ada' })
  await sendNotice({ ...asked, id: newId(), ttl: 5_000 })
  expect(made[1]?.notice.ttlMs).toBe(5_000)
  expect(await sendNotice({ ...asked, id: newId() })).toMatchObject({
    outcome: 'limited',
    policy: 'notice',
    rule: 'r',
  })
  expect(await sendNotice({ ...asked, id: newId() })).toMatchObject({ rule: 'r' })
  // The same rule in the captcha's policy counts separately.
  expect(await used({ ...asked, scene })).toEqual([0])

  onCommit(() => Promise.reject(new Error('away')))
  const other = request()
  for (let again = 0; again < 5; again++) {
    const sending = sendNotice({ ...other, id: newId() })
    await expect(sending).rejects.toThrow('away')
  }
})

test('a lock of checks: the send is accepted and reports how long no code passes; an adopted one too', async () => {
  const room = await openRoom()
  room.locks(900_000)
  const asked = request()
  const locked = { outcome: 'accepted', lockedForMs: 900_000 }
  expect(await room.sendCaptcha(asked)).toMatchObject(locked)
  room.adopts({ createdAt, expiresAt: createdAt, isOpen: true })
  expect(await room.sendCaptcha(asked)).toMatchObject(locked)
  expect(room.made).toHaveLength(1)
})

test('no lock of checks, or no answer of Redis: the send reports no lock', async () => {
  const room = await openRoom()
  for (const ms of [0, -1]) {
    room.locks(ms)
    const sent = await room.sendCaptcha(request())
    expect(sent).toMatchObject({ outcome: 'accepted' })
    expect(sent).not.toHaveProperty('lockedForMs')
  }
})

test('a mail domain that does not exist: rules on the recipient give back, rules on the caller and the challenge keep their use, and no code is forgotten', async () => {
  const rules = [
    { name: 'to', key: '{to}', sliding: '2 per 60s' },
    { name: 'ip', key: '{ip}', sliding: '2 per 60s' },
    { name: 'network', key: '{ipWide}', sliding: '3 per 60s' },
    { name: 'app', key: '{app}', sliding: '9 per 60s' },
  ]
  const { codes, sendCaptcha, sendNotice, reaches, used, returned } = await openRoom(rules)
  const forgotten: string[] = []
  codes.forget = (_, id) => void forgotten.push(id)
  reaches(false)
  const asked = request()
  for (const send of [sendCaptcha, sendNotice]) {
    const outcome = await send({ ...asked, id: newId() })
    expect(outcome).toEqual({ outcome: 'invalid_recipient', because: 'no_server' })
  }
  await eventually(async () => expect(await used(asked)).toEqual([0, 1, 1, 0]))
  expect({ forgotten, returned }).toEqual({ forgotten: [], returned: [] })
  expect(await sendCaptcha(request())).toEqual({
    outcome: 'invalid_recipient',
    because: 'no_server',
  })
  expect(await sendCaptcha(request())).toMatchObject({ outcome: 'limited', rule: 'ip' })
})
