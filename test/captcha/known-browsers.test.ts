import { createPrivateKey } from 'node:crypto'
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  jwtVerify,
  SignJWT,
} from 'jose'
import { expect, test, vi } from 'vitest'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createKnownBrowsers } from '../../src/captcha/known-browsers.ts'
import { createPasses } from '../../src/captcha/passes.ts'
import { createSigningKeys } from '../../src/captcha/signing-keys.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const { client: redis, prefix: keyPrefix, url } = await testRedis()
const first = 'the first secret, of thirty-two bytes or more'
const second = 'another secret, of thirty-two bytes or more'
const daysInSeconds = (days: number) => days * 86_400

const open = (secret = first, previous?: string, client = redis) =>
  createKnownBrowsers({ redis: client, keyPrefix, secrets: createSecrets(secret, previous) })
const openPasses = async () => {
  const secrets = createSecrets(first)
  const passes = closeLater(await createPasses({ redis, keyPrefix, secrets, nowMs: Date.now }))
  return passes
}

let count = 0
function newOwner(over = {}) {
  count += 1
  return { app: 'shop', channel: 'sms', to: `+86138004${count + 10_000}`, ...over } as const
}
type Owner = Parameters<Awaited<ReturnType<typeof open>>['laneOf']>[1]

async function tokenOf(owner: Owner, browsers?: Awaited<ReturnType<typeof open>>) {
  const { known } = await (browsers ?? (await open())).issue(owner, { isPage: true }, undefined)
  return known ?? expect.unreachable()
}

async function redisSeconds() {
  const [seconds] = await redis.time()
  return Number(seconds)
}

test('a token: a JWS by ES256 of a separate type, with the claims of the contract, for 180 days by the clock of Redis', async () => {
  const owner = newOwner()
  const before = await redisSeconds()
  const token = await tokenOf(owner)
  expect(decodeProtectedHeader(token)).toEqual({
    alg: 'ES256',
    typ: 'known+jwt',
    kid: expect.any(String),
  })
  const claims = decodeJwt(token)
  expect(Object.keys(claims).sort()).toEqual(['aud', 'exp', 'iat', 'iss', 'sub'])
  expect(claims).toMatchObject({ iss: 'postern', aud: 'shop' })
  expect(claims.iat).toBeGreaterThanOrEqual(before)
  expect(claims.iat).toBeLessThanOrEqual(await redisSeconds())
  expect(claims.exp).toBe((claims.iat ?? 0) + daysInSeconds(180))
  expect(JSON.stringify(claims)).not.toContain(owner.to.slice(-5))
})

test('a request about several addresses: known only if the token names all of them, by any channel to a number', async () => {
  const browsers = await open()
  const owner = newOwner()
  const token = await tokenOf(owner)
  const called = { ...owner, channel: 'voice' as const }
  const mail = { ...owner, channel: 'email' as const, to: 'ada@shop.example' }
  const lane = (...recipients: Owner[]) => browsers.laneOf(token, ...recipients)
  expect(await lane(owner)).toBe('known')
  expect(await lane(owner, called)).toBe('known')
  expect(await lane(called)).toBe('known')
  // The request also names another person's address.
  expect(await lane(owner, mail)).toBe('stranger')
  expect(await lane(mail, owner)).toBe('stranger')
  expect(await lane(owner, newOwner())).toBe('stranger')
  expect(await lane()).toBe('stranger')
})

test('its recipient in its app is known, and all else a stranger: no token, another recipient, channel or app', async () => {
  const browsers = await open()
  const owner = newOwner()
  const token = await tokenOf(owner)
  expect(await browsers.laneOf(token, owner)).toBe('known')
  expect(await browsers.laneOf(undefined, owner)).toBe('stranger')
  expect(await browsers.laneOf(true, owner)).toBe('stranger')
  const others = [newOwner(), { ...owner, app: 'bank' }, { ...owner, channel: 'email' as const }]
  for (const other of others) expect(await browsers.laneOf(token, other)).toBe('stranger')
})

test('a pass is no token, and a token no pass', async () => {
  const passes = await openPasses()
  const owner = newOwner()
  const pass = passes.issue({ ...owner, scene: 'login' })
  expect(await (await open()).laneOf(pass, owner)).toBe('stranger')
  const verdict = await passes.verify(await tokenOf(owner), 'shop', owner)
  expect(verdict).toEqual({ valid: false, reason: 'invalid' })
})

test('a server, or a process of an earlier build, that reads no type takes no token for a pass', async () => {
  const { jwks } = await openPasses()
  const expected = { algorithms: ['ES256'], issuer: 'postern', audience: 'shop' }
  const checked = jwtVerify(await tokenOf(newOwner()), createLocalJWKSet(jwks), expected)
  await expect(checked).rejects.toThrow('no applicable key')
})

test('forged, altered or of another secret → a stranger', async () => {
  const browsers = await open()
  const owner = newOwner()
  const token = await tokenOf(owner)
  const [head = '', body = '', signature = ''] = token.split('.')
  const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const header = decodeProtectedHeader(token)
  const resigned = await new SignJWT(decodeJwt(token))
    .setProtectedHeader({ ...header, alg: 'ES256', jwk: await exportJWK(privateKey) })
    .sign(privateKey)
  const forgeries = [
    `${encoded({ ...header, alg: 'none' })}.${body}.`,
    `${head}.${encoded({ ...decodeJwt(token), exp: 99_999_999_999 })}.${signature}`,
    `${head}.${body}.${signature.slice(0, -4)}AAAA`,
    `${head}.${body}.`,
    resigned,
    await tokenOf(owner, await open(second)),
    'a.b.c',
    `${encoded({ ...header, kid: 'none' })}.${body}.${signature}`,
    `${encoded([])}.${body}.${signature}`,
  ]
  for (const forgery of forgeries) {
    expect(await browsers.laneOf(forgery, owner), forgery).toBe('stranger')
  }
})

/** A genuine signature under other claims. */
async function signedWith(owner: Owner, claims: object) {
  const { publicKeyOf: _, jwks } = await createSigningKeys(createSecrets(first).knownSeeds)
  const seed = createSecrets(first).knownSeeds[0]?.(0) ?? expect.unreachable()
  const key = createPrivateKey({
    key: { ...jwks.keys[0], d: seed.toString('base64url') } as never,
    format: 'jwk',
  })
  return new SignJWT({ ...decodeJwt(await tokenOf(owner)), ...claims })
    .setProtectedHeader({ alg: 'ES256', typ: 'known+jwt', kid: jwks.keys[0]?.kid as string })
    .sign(key)
}

test('its time ends by the clock of Redis, with any clock of the process', async () => {
  const browsers = await open()
  const owner = newOwner()
  const now = await redisSeconds()
  expect(await browsers.laneOf(await signedWith(owner, {}), owner)).toBe('known')
  expect(await browsers.laneOf(await signedWith(owner, { exp: now }), owner)).toBe('stranger')
  expect(await browsers.laneOf(await signedWith(owner, { exp: undefined }), owner)).toBe('stranger')
  expect(await browsers.laneOf(await signedWith(owner, { iat: undefined }), owner)).toBe('stranger')
  expect(await browsers.laneOf(await signedWith(owner, { iss: 'x' }), owner)).toBe('stranger')
  const token = await tokenOf(owner)
  vi.useFakeTimers({ toFake: ['Date'] })
  try {
    for (const days of [-3_650, 3_650]) {
      vi.setSystemTime(Date.now() + daysInSeconds(days) * 1_000)
      expect(await browsers.laneOf(token, owner)).toBe('known')
      expect(Math.abs((decodeJwt(await tokenOf(owner)).iat ?? 0) - now)).toBeLessThan(600)
    }
  } finally {
    vi.useRealTimers()
  }
})

test('a reset ends the earlier tokens of its recipient, of no other recipient, and no later one, also within one second', async () => {
  const [browsers, other] = [await open(), await open()]
  const [owner, neighbour] = [newOwner(), newOwner()]
  const untouched = await tokenOf(neighbour)
  const ended: string[] = []
  for (let resets = 0; resets < 3; resets++) {
    ended.push(await tokenOf(owner))
    await browsers.endAll(owner)
    for (const token of ended) expect(await other.laneOf(token, owner)).toBe('stranger')
    expect(await other.laneOf(await tokenOf(owner), owner)).toBe('known')
  }
  expect(await other.laneOf(untouched, neighbour)).toBe('known')
  // A reset is remembered for as long as an earlier token could live.
  const [key = ''] = (await redis.keys(`${keyPrefix}known:*`)).sort()
  expect(await redis.ttl(key)).toBeGreaterThan(daysInSeconds(180))
})

test('a rotated secret: tokens of the previous one stay good, and a reset reaches them', async () => {
  const owner = newOwner()
  const [before, after, gone] = [await open(first), await open(second, first), await open(second)]
  const token = await tokenOf(owner, before)
  expect(await after.laneOf(token, owner)).toBe('known')
  expect(await gone.laneOf(token, owner)).toBe('stranger')
  const newer = await tokenOf(owner, after)
  await after.endAll(owner)
  for (const browsers of [before, after, gone]) {
    expect(await browsers.laneOf(token, owner)).toBe('stranger')
    expect(await browsers.laneOf(newer, owner)).toBe('stranger')
  }
  expect(await after.laneOf(await tokenOf(owner, before), owner)).toBe('known')
})

test('Redis away: a genuine token is a 503, a forged one a stranger, and a right code gets no token but its answer', async () => {
  const proxy = await startTcpProxy(Number(new URL(url).port))
  const client = closeLater(
    connectRedis(proxy.through(url), 'command', () => {}),
    'disconnect',
  )
  await eventually(() => client.ping())
  const browsers = await open(first, undefined, client as never)
  const owner = newOwner()
  const token = await tokenOf(owner)
  proxy.cut()
  await expect(browsers.laneOf(token, owner)).rejects.toThrow(Unavailable)
  expect(await browsers.laneOf(`${token.slice(0, -4)}AAAA`, owner)).toBe('stranger')
  expect(await browsers.issue(owner, { isPage: true }, token)).toEqual({})
  await expect(browsers.endAll(owner)).rejects.toThrow(Unavailable)
  proxy.forward()
  expect(await eventually(() => browsers.laneOf(token, owner))).toBe('known')
})
