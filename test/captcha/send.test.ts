import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createCodeStore } from '../../src/captcha/code-store.ts'
import { type CaptchaRequest, createSendCaptcha } from '../../src/captcha/send.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createLimiter, type RawPolicies } from '../../src/limiter/index.ts'
import { checkedPolicies } from '../../src/limiter/policy/parse.ts'
import type { CreatedNotice, Params, PreparedNotice } from '../../src/notice/create.ts'
import { createSendNotice } from '../../src/notice/send.ts'
import type { NoticeStore } from '../../src/notice/store.ts'
import { createCheckLimits } from '../../src/rules/check-limits.ts'
import { createQuota } from '../../src/rules/quota.ts'
import { noTestRecipients } from '../tools/no-test-recipients.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const server = await testRedis()
const secrets = createSecrets('the first secret, of thirty-two bytes or more')
const createdAt = new Date(Date.UTC(2026, 10, 22, 12))

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
  const quota = createQuota({ limiter, secrets, priceOf: () => 60, isTestRecipient: () => false })
  const made: { notice: PreparedNotice; params: Params; timeoutMs: number }[] = []
  /** What PostgreSQL does; it may look at what Redis holds by then. */
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
  const code = { length: 6, ttlMs: 290_000 }
  const policies = () => checkedPolicies({ captcha: rules })
  const takeTestNotice = () => expect.unreachable()
  const canReach = async () => isReached
  const waits = { ms: 0 }
  const checkLimits = {
    ...createCheckLimits({ quota, limiter, policies }),
    waitMsOf: async () => {
      if (waits.ms < 0) throw new Error('away')
      return waits.ms
    },
  }
  const deps = {
    quota,
    createNotice,
    store,
    testRecipients: noTestRecipients,
    takeTestNotice,
    canReach,
  }
  return {
    codes,
    made,
    /** How long no check passes; below 0: Redis does not say. */
    locks: (ms: number) => {
      waits.ms = ms
    },
    captcha: createSendCaptcha({ ...deps, codes, code, checkLimits }),
    notice: createSendNotice({ ...deps, ttlMs: 86_400_000 }),
    onCommit: (work: typeof commit) => {
      commit = work
    },
    reaches: (is: boolean) => {
      isReached = is
    },
    adopts: (row: typeof adopted) => {
      adopted = row
    },
    used: async (request: CaptchaRequest) => {
      const { to, channel, scene, app, template, origin } = request
      const { ip, country } = origin
      const fields = { to, channel, scene, app, template, dedupe: '', ip, country }
      return (await limiter.peek('captcha', fields)).map((state) => state.used)
    },
  }
}

let recipientCount = 0
function request(over: Partial<CaptchaRequest> = {}): CaptchaRequest {
  recipientCount += 1
  return {
    id: newId(),
    app: 'shop',
    channel: 'sms',
    to: `+86138003${String(recipientCount).padStart(5, '0')}`,
    scene: 'login',
    template: 'captcha',
    locale: 'en',
    params: { name: 'Ada' },
    origin: { ip: '203.0.113.1', country: 'CN', keyId: 'key', isPage: false },
    answerBy: performance.now() + 2_000,
    ...over,
  }
}

test('a send: the notice says the code that passes, its minutes rounded up, and what the caller gave', async () => {
  const { captcha, made, codes } = await openRoom()
  const asked = request()
  const outcome = await captcha.send(asked)
  expect(outcome).toMatchObject({
    accepted: true,
    notice: { id: asked.id, kind: 'captcha', ttlMs: 290_000, scene: 'login', createdAt },
    resendAt: createdAt,
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

test('a recipient that can’t be reached: refused after the limits, nothing is made and the quota is back', async () => {
  const { captcha, notice, made, used, reaches } = await openRoom()
  reaches(false)
  const asked = request()
  const refused = { code: 'invalid_recipient' }
  await expect(captcha.send(asked)).rejects.toMatchObject(refused)
  await expect(notice.send(asked)).rejects.toMatchObject(refused)
  expect(made).toEqual([])
  await eventually(async () => expect(await used(asked)).toEqual([0]))
})

test('the code is drawn, whatever the caller calls a variable', async () => {
  const { captcha, made, codes } = await openRoom()
  const asked = request({ params: { code: '0000', minutes: 99 } })
  await captcha.send(asked)
  const { params } = made[0] as (typeof made)[0]
  expect(params).toEqual({
    code: expect.stringMatching(/^\d{6}$/),
    minutes: 5,
    validity: '4 minutes',
  })
  expect(await codes.guess(asked, String(params.code))).toMatchObject({ result: 'passed' })
})

test('resendAt: when the limits admit the same request again, counted from the row', async () => {
  const { captcha } = await openRoom([{ name: 'r', key: '{to}', sliding: '1 per 60s' }])
  const outcome = await captcha.send(request())
  const waitMs = outcome.accepted ? outcome.resendAt.getTime() - createdAt.getTime() : 0
  expect(waitMs).toBe(60_000)
})

test('a refusal costs nothing: no notice, no code, and the code in the hand still passes', async () => {
  const { captcha, made, codes, used } = await openRoom()
  const asked = request()
  await captcha.send(asked)
  await captcha.send({ ...asked, id: newId() })
  const code = String(made[1]?.params.code)
  for (let again = 0; again < 3; again++) {
    expect(await captcha.send({ ...asked, id: newId() })).toMatchObject({
      accepted: false,
      policy: 'captcha',
      refusal: { rule: 'r' },
    })
  }
  expect(made).toHaveLength(2)
  expect(await used(asked)).toEqual([2])
  expect(await codes.guess(asked, code)).toMatchObject({ result: 'passed' })
})

test('the code before it passes until the commit, the new one after it', async () => {
  const { captcha, made, codes, onCommit } = await openRoom()
  const asked = request()
  await captcha.send(asked)
  const first = String(made[0]?.params.code)
  const during: unknown[] = []
  onCommit(async (_, params) => {
    during.push(await codes.guess(asked, String(params.code)))
  })
  await captcha.send({ ...asked, id: newId() })
  const second = String(made[1]?.params.code)
  if (first !== second) expect(during).toEqual([{ result: 'mismatch', triesLeft: 2 }])
  expect(await codes.guess(asked, second)).toMatchObject({ result: 'passed' })
})

test('the commit fails: the quota is back, the new code is gone, and the one before it passes (I23)', async () => {
  const { captcha, made, codes, onCommit, used } = await openRoom()
  const asked = request()
  await captcha.send(asked)
  const first = String(made[0]?.params.code)
  let lost = ''
  onCommit(async (_, params) => {
    lost = String(params.code)
    throw new Error('away')
  })
  await expect(captcha.send({ ...asked, id: newId() })).rejects.toThrow('away')
  await eventually(async () => expect(await used(asked)).toEqual([1]))
  if (lost !== first) {
    expect(await codes.guess(asked, lost)).toMatchObject({ result: 'mismatch' })
  }
  expect(await codes.guess(asked, first)).toMatchObject({ result: 'passed' })
  // Where there was none before, there is none after.
  const other = request()
  await expect(captcha.send(other)).rejects.toThrow('away')
  await eventually(async () => expect(await codes.settle(other, other.id)).toBe('lost'))
  expect(await codes.guess(other, lost)).toEqual({ result: 'gone' })
})

test('adopt: nothing under this id, or no code for an open one: null, and nothing taken', async () => {
  const { captcha, codes, adopts, used } = await openRoom()
  const asked = request()
  expect(await captcha.adopt(asked)).toBe(null)
  const expiresAt = new Date(createdAt.getTime() + 290_000)
  adopts({ createdAt, expiresAt, isOpen: true })
  expect(await captcha.adopt(asked)).toBe(null)
  await codes.remember(asked, asked.id, '123456')
  const outcome = await captcha.adopt(asked)
  expect(outcome).toMatchObject({
    accepted: true,
    notice: { id: asked.id, createdAt, expiresAt, kind: 'captcha' },
  })
  expect(await used(asked)).toEqual([0])
})

test('adopt: one that was sent is the answer, whatever became of its code; resendAt is the limits’', async () => {
  const { captcha, adopts } = await openRoom([{ name: 'r', key: '{to}', sliding: '1 per 60s' }])
  const asked = request()
  await captcha.send(asked)
  adopts({ createdAt, expiresAt: createdAt, isOpen: false })
  const outcome = await captcha.adopt({ ...asked, id: newId() })
  const waitMs = outcome?.accepted ? outcome.resendAt.getTime() - Date.now() : 0
  expect(waitMs).toBeGreaterThan(50_000)
  expect(waitMs).toBeLessThanOrEqual(60_000)
})

test('each field of a request may be what a rule counts by, the content as a whole too', async () => {
  const fields = ['to', 'channel', 'scene', 'app', 'ip', 'country', 'template', 'dedupe']
  for (const field of fields) {
    const { captcha } = await openRoom([{ name: 'r', key: `{${field}}`, sliding: '1 per 1h' }])
    const asked = request()
    const send = async (over: Partial<CaptchaRequest> = {}) =>
      (await captcha.send({ ...asked, ...over, id: newId() })).accepted
    expect(await send()).toBe(true)
    expect(await send()).toBe(false)
    const others: Record<string, Partial<CaptchaRequest>> = {
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
      // Content is recipient, template and variables: any of them makes another message.
      const counts =
        changed === field || (field === 'dedupe' && ['to', 'template'].includes(changed))
      if (counts) expect(await send(over), `${field}: another ${changed}`).toBe(true)
      else expect(await send(over), `${field}: the same, ${changed} aside`).toBe(false)
    }
  }
})

test('content: variables in any order, numbers as their text; another name or value is another message', async () => {
  const { captcha } = await openRoom([{ name: 'r', key: '{dedupe}', fixed: '1 per 60s' }])
  const asked = request({ params: { name: 'Ada', order: 7 } })
  const send = async (params: Params) =>
    (await captcha.send({ ...asked, params, id: newId() })).accepted
  expect(await send({ name: 'Ada', order: 7 })).toBe(true)
  expect(await send({ order: '7', name: 'Ada' })).toBe(false)
  expect(await send({ name: 'Ada', order: 8 })).toBe(true)
  expect(await send({ name: 'Ada', orders: 7 })).toBe(true)
  expect(await send({ name: 'Ada' })).toBe(true)
  expect(await send({ name: 'Ada', order: 8 })).toBe(false)
})

test('a notice: its own policy, its default time, its variables as they were given', async () => {
  const { notice, made, onCommit, used } = await openRoom()
  const { scene, ...asked } = request()
  const outcome = await notice.send(asked)
  expect(outcome).toMatchObject({
    accepted: true,
    notice: { kind: 'notice', ttlMs: 86_400_000 },
    resendAt: createdAt,
  })
  expect(made[0]?.params).toEqual({ name: 'Ada' })
  expect((await notice.send({ ...asked, id: newId(), ttlMs: 5_000 })).accepted).toBe(true)
  expect(made[1]?.notice.ttlMs).toBe(5_000)
  expect(await notice.send({ ...asked, id: newId() })).toMatchObject({
    accepted: false,
    policy: 'notice',
    refusal: { rule: 'r' },
  })
  expect(await notice.send({ ...asked, id: newId() })).toMatchObject({
    refusal: { rule: 'r' },
  })
  // The captcha's policy of the same rule counts apart.
  expect(await used({ ...asked, scene })).toEqual([0])

  onCommit(() => Promise.reject(new Error('away')))
  const other = request()
  for (let again = 0; again < 5; again++) {
    const sending = notice.send({ ...other, id: newId() })
    await expect(sending).rejects.toThrow('away')
  }
})

test('a lock of checks: the send is accepted and says how long no code passes; an adopted one too', async () => {
  const room = await openRoom()
  room.locks(900_000)
  const asked = request()
  expect(await room.captcha.send(asked)).toMatchObject({ accepted: true, lockedForMs: 900_000 })
  room.adopts({ createdAt, expiresAt: createdAt, isOpen: true })
  expect(await room.captcha.adopt(asked)).toMatchObject({ accepted: true, lockedForMs: 900_000 })
})

test('no lock of checks, or no word of Redis about one: the send says nothing of it', async () => {
  const room = await openRoom()
  for (const ms of [0, -1]) {
    room.locks(ms)
    const sent = await room.captcha.send(request())
    expect(sent).toMatchObject({ accepted: true })
    expect(sent).not.toHaveProperty('lockedForMs')
  }
})
