import { expect, test } from 'vitest'
import type { RedisClient } from '../../src/base/redis-script.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import type { Decision } from '../../src/limiter/index.ts'
import { type DecidedRecord, hashOf, sampleKey } from '../../src/support/record.ts'
import { readSample } from '../../src/support/recorded.ts'
import { createRecorder } from '../../src/support/recorder.ts'
import { createLevels, type SampleLimits } from '../../src/support/sample.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const server = await testRedis()
const redis = await server.connect()
const secrets = createSecrets('the first secret, of thirty-two bytes or more')
const hashed = (field: string, value: string) => hashOf(secrets, field, value)

const admitted: Decision = { admitted: true, remaining: [], nextInMs: 0 }
const refusal: Decision = {
  ...{ admitted: false, rule: 'recipient', window: '60s', limit: 1, windowMs: 60_000 },
  ...{ kind: 'sliding', retryAfterMs: 59_000 },
}

let opened = 0
let requests = 0
function open(limits: SampleLimits = {}, client: RedisClient = redis) {
  opened += 1
  const keyPrefix = `${server.prefix}${opened}:`
  let dropped = 0
  const recorder = createRecorder({
    redis: client,
    secrets,
    keyPrefix,
    policies: () => ({}),
    codeTtlMs: 300_000,
    onDropped: (record, lines) => {
      if (record === 'decisions') dropped += lines
    },
    sampleLimits: { everyMs: 30, ...limits },
  })
  releaseLater(() => recorder.close())
  function decide(to: string, decision: Decision = admitted, more: Record<string, string> = {}) {
    requests += 1
    const requestId = `01a20394-1bde-7203-9865-${String(requests).padStart(12, '0')}`
    const fields = {
      ...{ to, channel: 'sms', app: 'web', scene: 'login', ip: '198.51.100.7', country: 'CN' },
      ...{ prefix: to.slice(0, -4), mailbox: to, keyId: requestId, template: 'captcha' },
      ...{ dedupe: 'd'.repeat(32), price: 45, ...more },
    }
    recorder.decided({ policy: 'captcha', fields, requestId, decision, isSolved: true })
    return requestId
  }
  const read = async () => (await readSample(client, keyPrefix)).records
  return { recorder, decide, read, keyPrefix, dropped: () => dropped }
}
const isDecided = (record: { kind: string }): record is DecidedRecord => record.kind === 'decided'

test('a decision as the limiter saw it, with its time, and nobody readable', async () => {
  const { recorder, decide, read, keyPrefix } = open()
  const id = decide('+8613800138000')
  decide('+8613800138000', refusal)
  decide('+8613800138000', refusal)
  const person = { app: 'web', channel: 'sms', to: '+8613800138000' } as const
  recorder.checked(person, id, { result: 'passed', noticeId: id })
  recorder.checked(person, id, { result: 'mismatch' })
  recorder.released(person, id)
  await recorder.close()
  const hash = hashed('to', '+8613800138000')
  const fields = {
    ...{ to: hash, mailbox: hash, ip: hashed('ip', '198.51.100.7') },
    ...{ prefix: hashed('prefix', '+861380013'), dedupe: hashed('dedupe', 'd'.repeat(32)) },
    ...{
      channel: 'sms',
      app: 'web',
      scene: 'login',
      country: 'CN',
      template: 'captcha',
      price: 45,
    },
  }
  const records = await read()
  const shortId = id.slice(-12)
  expect(records).toMatchObject([
    { kind: 'decided', times: 1, policy: 'captcha', id: shortId, isSolved: true, fields },
    { kind: 'decided', refusal: { policy: 'captcha', rule: 'recipient' }, times: 2, fields },
    { kind: 'checked', result: 'passed', id: shortId, sentId: shortId },
    { kind: 'released', id: shortId },
  ])
  expect(records).toHaveLength(4)
  expect(records[0]).not.toHaveProperty('refusal')
  for (const { atMs } of records) expect(Math.abs(atMs - Date.now())).toBeLessThan(5_000)
  const raw = await server.client.lrange(sampleKey(keyPrefix), 0, -1)
  expect(JSON.stringify(raw)).not.toMatch(/13800138000|1380013|198\.51/)
  expect(await server.client.pttl(sampleKey(keyPrefix))).toBeGreaterThan(6 * 86_400_000)
})

test('above the bound: fewer recipients, each with all that it did; the report is told', async () => {
  const { recorder, decide, read, dropped } = open({ maxPerTurn: 50 })
  const people = Array.from({ length: 400 }, (_, index) => `+86138001${10_000 + index}`)
  for (const to of people) for (const _ of [1, 2]) decide(to)
  await recorder.close()
  const records = await read()
  const share = Math.max(...records.map((record) => record.share))
  expect(share).toBeGreaterThanOrEqual(4)
  const decided = records.filter(isDecided)
  expect(decided.length).toBeLessThanOrEqual(50)
  expect(decided.length + dropped()).toBe(800)
  const kept = people.filter((to) => createLevels(secrets)(to) >= share)
  expect(kept.length).toBeGreaterThan(0)
  expect(decided.map(({ fields }) => fields.to).sort()).toEqual(
    kept.flatMap((to) => [hashed('to', to), hashed('to', to)]).sort(),
  )
})

test('a recipient hammered from ever new addresses is one record a turn, and nobody else is left out for it', async () => {
  const { recorder, decide, read } = open({ maxPerTurn: 50 })
  for (let index = 0; index < 5_000; index++) {
    decide('+8613800138000', refusal, { ip: `2001:db8:${index.toString(16)}::/64` })
  }
  decide('+8613800138001')
  await recorder.close()
  const decided = (await read()).filter(isDecided)
  expect(decided.map(({ times, share }) => [times, share])).toEqual([
    [5_000, 0],
    [1, 0],
  ])
})

test('the list is bounded, and when traffic is calm again everybody is recorded', async () => {
  const { decide, keyPrefix, read } = open({
    everyMs: 5,
    maxPerTurn: 20,
    maxLines: 300,
    quietMs: 200,
  })
  for (let turn = 0; turn < 60; turn++) {
    for (let index = 0; index < 15; index++) decide(`+86138001${turn * 100 + index}`)
    await new Promise((wake) => setTimeout(wake, 8))
  }
  expect(await server.client.llen(sampleKey(keyPrefix))).toBeLessThanOrEqual(300)
  for (let index = 0; index < 40; index++) decide(`+86138002${10_000 + index}`)
  await eventually(async () => (await read()).some(({ share }) => share > 0))
  await eventually(async () => {
    decide('+8613800138777')
    const records = await read()
    return records.at(-1)?.share === 0
  })
})

test('where nobody is recorded for a while the list says of which share that is', async () => {
  const { decide, read } = open({ maxPerTurn: 1, quietMs: 100 })
  const people = Array.from({ length: 300 }, (_, index) => `+86138001${10_000 + index}`)
  for (const to of people) decide(to)
  const leftOut = people.find((to) => createLevels(secrets)(to) === 0) ?? ''
  const told = await eventually(async () => {
    decide(leftOut)
    return (await read()).find(({ kind }) => kind === 'share') ?? false
  })
  expect(told.share).toBeGreaterThan(0)
})

test('a refusal that a halving left out finds no first any more: its repeats are counted as dropped', async () => {
  const { recorder, decide, read, dropped } = open({ everyMs: 60_000, maxPerTurn: 4 })
  const people = Array.from({ length: 100 }, (_, index) => `+86138001${10_000 + index}`)
  const levelOf = createLevels(secrets)
  const out = people.find((to) => levelOf(to) === 0) ?? ''
  for (const _ of [1, 2, 3]) decide(out, refusal)
  const others = people.filter((to) => levelOf(to) > 0)
  for (const to of others) decide(to)
  decide(out, refusal)
  await recorder.close()
  const records = (await read()).filter(isDecided)
  expect(records.every((record) => record.refusal === undefined)).toBe(true)
  // The first line, and its repeat after the halving.
  expect(records.length + dropped()).toBe(others.length + 2)
})

test('a list that is full before a day is over: fewer recipients, though each turn has room', async () => {
  const { decide, read } = open({ everyMs: 5, maxLines: 20, lookEveryMs: 0 })
  let asked = 0
  await eventually(async () => {
    for (const _ of [1, 2, 3]) decide(`+86138001${10_000 + asked++}`)
    return (await read()).some(({ share }) => share >= 2)
  })
})

test('a full list that reaches back less than a day: ever fewer recipients; more than two days, or not full: more again', async () => {
  const { decide, read, keyPrefix } = open({ everyMs: 5, maxLines: 20, lookEveryMs: 0, quietMs: 0 })
  const key = sampleKey(keyPrefix)
  const people = Array.from({ length: 3_000 }, (_, index) => `+86138001${10_000 + index}`)
  const always = people.find((to) => createLevels(secrets)(to) >= 8) ?? ''
  /** The share in the second of two turns, for a list with so many lines of that age. */
  async function shareAfter(lines: number, ageHours: number) {
    await server.client.del(key)
    const line = `${Date.now() - ageHours * 3_600_000}["s",0,0]`
    await server.client.rpush(key, ...Array.from({ length: lines }, () => line))
    for (const _ of ['first turn', 'second turn']) {
      const id = decide(always)
      await eventually(async () => (await read()).some((one) => 'id' in one && id.endsWith(one.id)))
      // The share changes when the answer to the write has been read.
      await new Promise(setImmediate)
    }
    return (await read()).at(-1)?.share
  }
  expect(await shareAfter(20, 1)).toBe(1)
  expect(await shareAfter(20, 1)).toBe(3)
  expect(await shareAfter(20, 36)).toBe(4)
  expect(await shareAfter(20, 60)).toBe(3)
  expect(await shareAfter(20, 60)).toBe(1)
  expect(await shareAfter(2, 1)).toBe(0)
})

test('more lines than a page are read once each, in the order of writing, while others are added', async () => {
  const { keyPrefix, read } = open()
  const key = sampleKey(keyPrefix)
  const line = (id: number) => `${id}["r",0,0,[0,0,"${id}"]]`
  const [lines, later] = [5_000, 50]
  await server.client.rpush(key, ...Array.from({ length: lines }, (_, id) => line(id)))
  const reading = read()
  for (let id = lines; id < lines + later; id++) void server.client.rpush(key, line(id))
  const ids = (await reading).map((record) => Number(record.kind === 'released' && record.id))
  expect(ids.slice(0, lines)).toEqual(Array.from({ length: lines }, (_, id) => id))
  expect(new Set(ids).size).toBe(ids.length)
})

test('levels: half of the recipients have one or more, a quarter two or more, and another secret has others', () => {
  const levelOf = createLevels(secrets)
  const people = Array.from({ length: 20_000 }, (_, index) => `+86138${10_000_000 + index}`)
  const levels = people.map(levelOf)
  for (const least of [1, 2, 3, 4, 5, 6]) {
    const part = levels.filter((level) => level >= least).length / people.length
    expect(Math.abs(part * 2 ** least - 1)).toBeLessThan(0.25)
  }
  const others = people.map(
    createLevels(createSecrets('another secret, of thirty-two bytes or more')),
  )
  const same = levels.filter((level, index) => level === others[index]).length
  expect(same / people.length).toBeLessThan(0.4)
})
