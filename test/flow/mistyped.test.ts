/**
 * People who mistype, and attackers who guess, under every shipped policy file: the real product, with limits on a
 * clock of the test.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { start } from '../../src/main/compose.ts'
import { loadConfig } from '../../src/main/load-config.ts'
import { testDatabase } from '../tools/database.ts'
import { clientOf, posternEnv } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'

const minuteMs = 60_000
/** `postern.yaml` is the starter (test/contract/policies.test.ts). */
const files = ['starter', 'strict', 'china', 'global'].map((name) => `policies/${name}.yaml`)

let people = 0
function newNumber(): string {
  people += 1
  return `+86138004${String(people).padStart(5, '0')}`
}

async function openWith(file: string) {
  const path = fileURLToPath(new URL(`../../${file}`, import.meta.url))
  const { templates: _, ...policyFile } = parse(readFileSync(path, 'utf8'))
  const redis = await testRedis()
  const database = await testDatabase()
  const env = posternEnv({ redis, database, policyFile })
  const loaded = await loadConfig(env)
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  // Ahead of Redis' clock: a count of a limit must not expire by its time to live.
  let nowMs = Date.now() + 3_600_000
  const running = await start(
    loaded.config,
    { api: true, worker: true },
    { keyPrefix: redis.prefix, clock: () => nowMs, quietMs: 0 },
  )
  releaseLater(() => running.close())
  const secretKey = env.BOOTSTRAP_SECRET_KEY as string
  const client = clientOf(running.addresses.api ?? '', secretKey)
  const pageKey = await publishableKey(database)
  const { code, policies } = loaded.config.file
  return {
    ...{ client, secretKey, pageKey, code, policies },
    wait: (ms: number) => {
      nowMs += ms
    },
  }
}

const wrongFor = (code: string) =>
  String((Number(code) + 1) % 10 ** code.length).padStart(code.length, '0')

describe.each(files)('%s', (file) => {
  test('an honest person who mistypes a code’s tries twice and types the third code right passes (I33)', async () => {
    const { client, secretKey, pageKey, wait } = await openWith(file)
    for (const key of [secretKey, pageKey]) {
      const person = { channel: 'sms', to: newNumber() }
      const post = (path: string, body: object = person) => client.post(path, body, { key })
      for (let turn = 1; turn <= 2; turn++) {
        const { body: sent } = await post('/v1/captchas')
        expect(sent).not.toHaveProperty('lockedForMs')
        const code = await client.codeFor(sent.id)
        for (const triesLeft of [2, 1, 0]) {
          const { body } = await post('/v1/captchas/check', { ...person, code: wrongFor(code) })
          expect(body).toMatchObject({ code: 'code_mismatch', triesLeft })
          // The advice "Ask for a new one" works.
          expect(body).not.toHaveProperty('lockedForMs')
        }
        expect((await post('/v1/captchas/check', { ...person, code })).body.code).toBe('code_gone')
        wait(minuteMs + 1)
      }
      const { body: third } = await post('/v1/captchas')
      const code = await client.codeFor(third.id)
      expect((await post('/v1/captchas/check', { ...person, code })).status).toBe(200)
    }
  })

  test('after the tries of three codes the answer has the lock, and so has a send; at its end a code passes', async () => {
    const { client, wait } = await openWith(file)
    const person = { channel: 'sms', to: newNumber() }
    let last: { lockedForMs?: number } = {}
    for (let turn = 1; turn <= 3; turn++) {
      const { body: sent } = await client.post('/v1/captchas', person)
      const code = wrongFor(await client.codeFor(sent.id))
      for (let tries = 0; tries < 3; tries++) {
        expect(last).not.toHaveProperty('lockedForMs')
        last = (await client.post('/v1/captchas/check', { ...person, code })).body
      }
      wait(minuteMs + 1)
    }
    expect(last).toMatchObject({ code: 'code_mismatch', triesLeft: 0, lockedForMs: 15 * minuteMs })
    const { status, body: sent } = await client.post('/v1/captchas', person)
    expect([status, sent.lockedForMs]).toEqual([202, 14 * minuteMs - 1])
    const right = { ...person, code: await client.codeFor(sent.id) }
    expect((await client.post('/v1/captchas/check', right)).body).toMatchObject({
      ...{ code: 'locked', policy: 'check', rule: 'guesses' },
      retryAfterMs: 14 * minuteMs - 1,
    })
    wait(14 * minuteMs - 1)
    expect((await client.post('/v1/captchas/check', right)).status).toBe(200)
  })

  test('a guesser from any number of addresses gets at most 30 comparisons a day at one number (I33)', async () => {
    const { client, wait } = await openWith(file)
    const to = newNumber()
    let compared = 0
    for (let turn = 0; turn < 144; turn++) {
      const ip = `198.51.${turn}.1`
      const { status, body } = await client.post('/v1/captchas', { channel: 'sms', to, ip })
      const code = status === 202 ? wrongFor(await client.codeFor(body.id)) : undefined
      for (let guess = 0; guess < 4 && code; guess++) {
        const reply = await client.post('/v1/captchas/check', { channel: 'sms', to, ip, code })
        if (reply.body.code === 'code_mismatch') compared += 1
      }
      wait(10 * minuteMs)
    }
    expect(compared).toBe(30)
  })
})
