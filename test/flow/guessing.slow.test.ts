/**
 * Attackers guess at one number from many addresses, with the key of a page, without end. Their checks without a
 * challenge are soon used up, also where no code exists. The owner of the number can still sign in.
 */
import { randomInt } from 'node:crypto'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { releaseLater } from '../tools/release.ts'
import { solveChallenge } from '../tools/solve-challenge.ts'
import { eventually } from '../tools/wait.ts'

const owner = '+8613800138000'
const signIns = 100

test(`while an attack on a number runs, its owner signs in ${signIns} times and fails at most once`, async () => {
  const postern = await startPostern({
    policyFile: {
      challenge: { kind: 'altcha', tries: 5 },
      browser: {
        checkRules: [
          {
            name: 'check-recipient',
            key: '{app}:{channel}:{to}',
            sliding: '10 per 5m',
            mode: 'challenge',
            refund: 'passed',
          },
        ],
      },
      policies: {
        captcha: [],
        notice: [],
        check: [
          {
            name: 'guesses',
            key: '{app}:{channel}:{to}:{ip}',
            lockout: { limit: 3, window: '5m', lock: '15m' },
          },
          {
            name: 'guess-budget',
            key: '{app}:{channel}:{to}',
            sliding: '20 per 24h',
            mode: 'challenge',
          },
        ],
      },
    },
  })
  const key = await publishableKey(postern.database)
  const agent = new Agent({ keepAlive: false })
  const statuses = new Map<number, number>()
  let isOver = false

  /** One guess from a new address: the whole of 127.0.0.0/8 is this machine. */
  function guess(): Promise<void> {
    const body = JSON.stringify({
      channel: 'sms',
      to: owner,
      code: String(randomInt(10_000)).padStart(4, '0'),
    })
    return new Promise((resolve) => {
      const outgoing = request(
        `${postern.url}/v1/captchas/check`,
        {
          method: 'POST',
          agent,
          localAddress: `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}`,
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        },
        (response) => {
          const { statusCode = 0 } = response
          statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
          response.resume().once('close', resolve)
        },
      )
      outgoing.once('error', () => resolve())
      outgoing.end(body)
    })
  }
  async function attack(): Promise<void> {
    while (!isOver) {
      await guess()
      // A flood, which leaves the owner's requests a share of a busy machine.
      await sleep(10)
    }
  }
  const attackers = Array.from({ length: 4 }, attack)
  releaseLater(async () => {
    isOver = true
    await Promise.all(attackers)
    agent.destroy()
  })
  await eventually(() => (statuses.get(403) ?? 0) > 0)

  /** Like a page: a 503 of a busy machine counted nothing, so the check is repeated. */
  const post = (path: string, body: object) =>
    eventually(async () => {
      const reply = await postern.post(path, body, { key })
      return reply.status === 503 ? false : reply
    })
  async function signIn(): Promise<boolean> {
    const { status, body: sent } = await post('/v1/captchas', { channel: 'sms', to: owner })
    if (status !== 202) return false
    const message = await eventually(async () => {
      const messages = await postern.messages(owner)
      return messages.find(({ noticeId }) => noticeId === sent.id) ?? false
    })
    const check = { channel: 'sms', to: owner, code: message.text.match(/\d{4}/)?.[0] }
    let reply = await post('/v1/captchas/check', check)
    if (reply.body.code === 'challenge_required') {
      const challenge = await solveChallenge(reply.body.challenge.challenge)
      reply = await post('/v1/captchas/check', { ...check, challenge })
    }
    return reply.status === 200
  }

  let passed = 0
  for (let turn = 0; turn < signIns; turn++) if (await signIn()) passed += 1
  expect(passed).toBeGreaterThanOrEqual(signIns - 1)
  // The attack was real: hundreds of guesses came, and no more than the budget were compared.
  expect(statuses.get(422) ?? 0).toBeLessThanOrEqual(20)
  expect(statuses.get(403)).toBeGreaterThan(signIns)
}, 120_000)
