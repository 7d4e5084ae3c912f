import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify, SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createPasses } from '../../src/captcha/passes.ts'
import { createSigningKey } from '../../src/captcha/signing-keys.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const { client: redis, prefix: keyPrefix, url } = await testRedis()
const first = 'the first secret, of thirty-two bytes or more'
const second = 'another secret, of thirty-two bytes or more'
let now = Date.now()
const open = (secret = first, previous?: string) =>
  createPasses({
    redis,
    keyPrefix,
    secrets: createSecrets(secret, previous),
    nowMs: () => now,
  }).then((passes) => {
    releaseLater(() => passes.close())
    return passes
  })
const passed = { app: 'shop', scene: 'login', channel: 'sms', to: '+8613800138000' } as const

test('a pass: a JWS by ES256 with the claims of the contract, and no readable recipient', async () => {
  const passes = await open()
  const pass = passes.issue(passed)
  expect(decodeProtectedHeader(pass)).toEqual({
    alg: 'ES256',
    typ: 'JWT',
    kid: passes.jwks.keys[0]?.kid,
  })
  const claims = decodeJwt(pass)
  expect(claims).toMatchObject({ iss: 'postern', aud: 'shop', scene: 'login', channel: 'sms' })
  expect(claims.exp).toBe((claims.iat as number) + 300)
  expect(claims.jti).toMatch(/^[0-9a-f-]{36}$/)
  expect(JSON.stringify(claims)).not.toContain('8000')
  expect(passes.jwks.keys[0]).not.toHaveProperty('d')
})

test('a site checks it with the published keys alone', async () => {
  const passes = await open()
  const keys = createLocalJWKSet(passes.jwks)
  const options = { issuer: 'postern', audience: 'shop' }
  const { payload } = await jwtVerify(passes.issue(passed), keys, options)
  expect(payload.scene).toBe('login')
  const other = passes.issue({ ...passed, app: 'bank' })
  await expect(jwtVerify(other, keys, options)).rejects.toThrow('aud')
})

test('each number of a signature has 32 bytes, also a small one', async () => {
  const passes = await open()
  const keys = createLocalJWKSet(passes.jwks)
  // One number in 256 begins with a zero byte.
  const small = { r: 0, s: 0 }
  while (small.r < 2 || small.s < 2) {
    const pass = passes.issue(passed)
    const signature = Buffer.from(pass.split('.')[2] ?? '', 'base64url')
    expect(signature).toHaveLength(64)
    if (signature[0] === 0) small.r++
    if (signature[32] === 0) small.s++
    await jwtVerify(pass, keys)
  }
})

test('verified here: good once, also with many parallel requests', async () => {
  const [api, other] = [await open(), await open()]
  const pass = api.issue(passed)
  const verdicts = await Promise.all(
    Array.from({ length: 200 }, (_, nth) => (nth % 2 ? api : other).verify(pass, 'shop')),
  )
  expect(verdicts.filter(({ valid }) => valid)).toHaveLength(1)
  expect(verdicts.find(({ valid }) => !valid)).toEqual({ valid: false, reason: 'used' })
  const verifiedAt = new Date(Math.floor(now / 1_000) * 1_000)
  const good = { valid: true, scene: 'login', channel: 'sms', verifiedAt }
  expect(verdicts.find(({ valid }) => valid)).toEqual(good)
})

test('a used pass is remembered for longer than it lives, by as much as two clocks may differ', async () => {
  const passes = await open()
  const pass = passes.issue(passed)
  expect(await passes.verify(pass, 'shop')).toMatchObject({ valid: true })
  const lives = await redis.pttl(`${keyPrefix}pass:${decodeJwt(pass).jti}`)
  const leftMs = (decodeJwt(pass).exp as number) * 1_000 - now
  expect(lives).toBeGreaterThan(leftMs + 25_000)
  expect(lives).toBeLessThanOrEqual(leftMs + 30_001)
  // Verified in its last second, and again by a process whose clock is 30 s behind.
  const late = passes.issue(passed)
  const usedAtMs = now
  now = (decodeJwt(late).exp as number) * 1_000 - 1
  expect(await passes.verify(late, 'shop')).toMatchObject({ valid: true })
  now -= 29_000
  expect(await passes.verify(late, 'shop')).toEqual({ valid: false, reason: 'used' })
  expect(await redis.pttl(`${keyPrefix}pass:${decodeJwt(late).jti}`)).toBeGreaterThan(25_000)
  now = usedAtMs
})

test("another app's, another recipient's and an expired one are no good, and the recipient's own still is", async () => {
  const passes = await open()
  const pass = passes.issue(passed)
  expect(await passes.verify(pass, 'bank')).toEqual({ valid: false, reason: 'other_app' })
  const stranger = { channel: 'sms', to: '+8613800138001' } as const
  expect(await passes.verify(pass, 'shop', stranger)).toEqual({
    valid: false,
    reason: 'other_recipient',
  })
  const mail = { channel: 'email', to: passed.to } as const
  expect(await passes.verify(pass, 'shop', mail)).toMatchObject({ reason: 'other_recipient' })
  expect(await passes.verify(pass, 'shop', passed)).toMatchObject({ valid: true })

  const late = passes.issue(passed)
  now += 299_000
  expect(await passes.verify(passes.issue(passed), 'shop')).toMatchObject({ valid: true })
  now += 1_001
  expect(await passes.verify(late, 'shop')).toEqual({ valid: false, reason: 'expired' })
})

test.each([
  ['its answer is lost', 'dropAnswers'],
  ['Redis stands still', 'stall'],
  ['the connection is cut', 'cut'],
] as const)('a question that ends in 503 because %s uses no pass up (I23)', async (_, how) => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const client = closeLater(
    connectRedis(proxy.through(url), 'command', () => {}),
    'disconnect',
  )
  const passes = await createPasses({
    redis: client,
    keyPrefix,
    secrets: createSecrets(first),
    nowMs: () => now,
  })
  releaseLater(() => passes.close())
  await eventually(() => client.ping())
  const pass = passes.issue(passed)
  proxy[how]()
  await expect(passes.verify(pass, 'shop')).rejects.toThrow(Unavailable)
  if (how === 'dropAnswers') proxy.reset()
  proxy.forward()
  const verdict = await eventually(async () => {
    const told = await passes.verify(pass, 'shop')
    if (!told.valid) throw new Error(told.reason)
    return told
  })
  expect(verdict).toMatchObject({ valid: true, scene: 'login' })
  expect(await passes.verify(pass, 'shop')).toEqual({ valid: false, reason: 'used' })
})

test('forged: no signature, another algorithm, another key, altered claims', async () => {
  const passes = await open()
  const pass = passes.issue(passed)
  const [head = '', body = '', signature = ''] = pass.split('.')
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const { kid } = decodeProtectedHeader(pass)
  const elsewhere = await (await open(second)).issue(passed)
  const shared = await new SignJWT({ scene: 'login', channel: 'sms' })
    .setProtectedHeader({ alg: 'HS256', kid: kid as string })
    .setIssuer('postern')
    .setAudience('shop')
    .setExpirationTime('5m')
    .sign(Buffer.from(JSON.stringify(passes.jwks.keys[0])))
  const forgeries = [
    `${encoded({ alg: 'none', kid })}.${body}.`,
    `${encoded({ alg: 'none', kid })}.${body}.${signature}`,
    `${head}.${encoded({ ...decodeJwt(pass), scene: 'payment' })}.${signature}`,
    `${head}.${body}.${signature.slice(0, -4)}AAAA`,
    elsewhere,
    shared,
    'a.b.c',
  ]
  for (const forgery of forgeries) {
    expect(await passes.verify(forgery, 'shop'), forgery).toEqual({
      valid: false,
      reason: 'invalid',
    })
  }
})

test("sub: another one for each app, and never the hash of the recipient's notices", async () => {
  const passes = await open()
  const subOf = async (app: string) => decodeJwt(passes.issue({ ...passed, app })).sub
  const [shop, again, bank] = [await subOf('shop'), await subOf('shop'), await subOf('bank')]
  expect(again).toBe(shop)
  expect(bank).not.toBe(shop)
  const hashes = createSecrets(first).recipientHashes('sms', passed.to)
  for (const encoding of ['base64url', 'hex'] as const) {
    expect([shop, bank]).not.toContain(hashes[0]?.toString(encoding))
  }
  expect(shop).toMatch(/^[\w-]{22,}$/)
})

test('another spelling of the same bytes is no pass: only its canonical form is taken', async () => {
  const passes = await open()
  const pass = passes.issue(passed)
  const parts = pass.split('.')
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const bytes = (part: string) => Buffer.from(part, 'base64url')
  const spellings = parts.flatMap((part, nth) => {
    const others = [...alphabet].map((letter) => `${part.slice(0, -1)}${letter}`)
    const same = others.filter((other) => other !== part && bytes(other).equals(bytes(part)))
    return [...same, `${part}=`, `${part}==`, `${part}\n`, ` ${part}`, part.replaceAll('_', '/')]
      .filter((other) => other !== part)
      .map((other) => parts.map((own, index) => (index === nth ? other : own)).join('.'))
  })
  // A signature of 64 bytes leaves four bits of its last letter unused.
  expect(spellings.length).toBeGreaterThan(15 + 4 * 3)
  for (const spelling of spellings) {
    expect(await passes.verify(spelling, 'shop'), spelling).toEqual({
      valid: false,
      reason: 'invalid',
    })
  }
  expect(await passes.verify(pass, 'shop')).toMatchObject({ valid: true })
})

test('a rotated secret: signatures of the previous one stay good, and both keys are published', async () => {
  const before = await open(first)
  const pass = before.issue(passed)
  const after = await open(second, first)
  expect(after.jwks.keys).toHaveLength(2)
  expect(after.jwks.keys[1]).toEqual(before.jwks.keys[0])
  expect(await after.verify(pass, 'shop', passed)).toMatchObject({ valid: true })
  const gone = await open(second)
  expect(await gone.verify(before.issue(passed), 'shop')).toMatchObject({ valid: false })
})

test('the signing key: seeds that are no private key of the curve are passed over', async () => {
  const seeds = [0, 255, 7].map((byte) => Buffer.alloc(32, byte))
  const { id } = await createSigningKey(() => seeds[2] as Buffer)
  expect(await createSigningKey((nth) => seeds[nth] ?? expect.unreachable())).toMatchObject({ id })
})
