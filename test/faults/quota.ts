/** The limits and the quota, attacked by many callers at once and by a process that dies in between. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Fleet, freshPhone, startFleet } from '../tools/fleet.ts'
import type { PosternProcess } from '../tools/processes.ts'
import { ownCluster } from '../tools/redis-topologies.ts'
import { eventually } from '../tools/wait.ts'
import type { Fault, Lab } from './fault.ts'

const perRecipient = 5
const perScene = 8

/** Besides the recipient's limit a wider one, which a refusal by the first must not touch. */
const twoLimits = {
  captcha: [
    { name: 'recipient', key: '{channel}:{to}', sliding: `${perRecipient} per 1h` },
    { name: 'scene', key: '{scene}', sliding: `${perScene} per 1h` },
  ],
  notice: [],
  check: [],
}

/** How long a busy machine may spoil one round after the other with a 503. */
const roundsWithinMs = 20_000

async function proveExactness(fleet: Fleet, processes: number, lab: Lab): Promise<void> {
  const apis = fleet.apis.slice(0, processes)
  const untilMs = performance.now() + roundsWithinMs
  // A round that is wrong throws, and is not repeated.
  while (!(await isExact(fleet, apis, `scene-${lab.between(0, 1e9)}`))) {
    if (performance.now() > untilMs) throw new Error('somebody heard 503 in every round')
  }
}

/**
 * One round, with numbers and a scene of its own. Never more than the limit are accepted; just as many are, unless
 * somebody heard 503: that gives the quota back, when others have heard 429 already. False for such a round.
 */
async function isExact(
  fleet: Fleet,
  apis: readonly PosternProcess[],
  scene: string,
): Promise<boolean> {
  const send = async (to: string, index: number) => {
    const api = apis[index % apis.length]
    return (await fleet.post('/v1/captchas', { channel: 'sms', to, scene }, api)).status
  }
  const to = freshPhone()
  const statuses = await Promise.all(Array.from({ length: 1_000 }, (_, index) => send(to, index)))
  const count = (wanted: number) => statuses.filter((status) => status === wanted).length
  const accepted = count(202)
  const unavailable = count(503)
  expect(accepted + count(429) + unavailable).toBe(1_000)
  expect(accepted).toBeLessThanOrEqual(perRecipient)
  // A row whose 503 was said before its commit is closed again, and is none of these.
  await eventually(
    async () => {
      const [rows] = await fleet.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM notice WHERE recipient = $1 AND state = 'pending'`,
        [to],
      )
      expect(rows?.count).toBe(accepted)
    },
    { withinMs: 10_000, everyMs: 100 },
  )
  if (unavailable > 0) return false
  expect(accepted).toBe(perRecipient)
  // The scene has what the recipient's refusals left untouched, and no more.
  const others: number[] = []
  for (let index = 0; index <= perScene - perRecipient; index++) {
    others.push(await send(freshPhone(), index))
  }
  if (others.includes(503)) return false
  expect(others).toEqual([202, 202, 202, 429])
  return true
}

/** Its first requests are slow for other reasons: many accepted and many refused, whatever the answers are. */
const warmUp = (fleet: Fleet) =>
  Promise.all(
    fleet.apis.flatMap((api) => Array.from({ length: 100 }, () => fleet.send(freshPhone(), api))),
  )

const i3: Fault = {
  id: 'I3',
  breaks:
    '1,000 sends at once to one recipient, over 1, 2 and 4 API processes, one Redis and a cluster',
  holds: 'exactly the limit is accepted, a refusal costs no quota and no message',
  proves: 'I3',
  async prove(lab) {
    const { url } = await ownCluster()
    for (const redis of [{}, { redisUrl: url }]) {
      const fleet = await startFleet({
        apis: 4,
        workers: 0,
        policyFile: { policies: twoLimits },
        ...redis,
      })
      await warmUp(fleet)
      for (let repetition = 0; repetition < lab.length(1, 100); repetition++) {
        for (const processes of [1, 2, 4]) await proveExactness(fleet, processes, lab)
      }
      await Promise.all(fleet.apis.map((api) => api.kill()))
    }
    return undefined
  },
}

/** After a kill: what became of a send whose answer never came, seen through a process that lives. */
async function quotaAndCode(fleet: Fleet, to: string) {
  const check = await fleet.post('/v1/captchas/check', { channel: 'sms', to, code: '0000' })
  expect([200, 410, 422]).toContain(check.status)
  const resend = await fleet.send(to)
  expect([202, 429]).toContain(resend.status)
  return { hasCode: check.status !== 410, isTaken: resend.status === 429 }
}

const i10: Fault = {
  id: 'I10',
  breaks: 'an API killed at every step of a send, 200 times',
  holds: 'no code without its quota; no quota without an answer, but for the requests under way',
  proves: 'I10',
  async prove(lab) {
    const fleet = await startFleet({ apis: 1, workers: 0 })
    const underWay = 8
    let halfway = 0
    for (let kills = 0; kills < lab.length(5, 200); kills++) {
      const victim = await fleet.startApi()
      fleet.apis.pop()
      // Its first request is slow for other reasons.
      await fleet.send(freshPhone(), victim)
      const entries = Array.from({ length: underWay }, async () => {
        const to = freshPhone()
        const status = await fleet.send(to, victim).then(
          (reply) => reply.status,
          () => 0,
        )
        return { to, status }
      })
      await sleep(lab.between(0, 15))
      await victim.kill()
      for (const { to, status } of await Promise.all(entries)) {
        const { hasCode, isTaken } = await quotaAndCode(fleet, to)
        if (hasCode) expect(isTaken).toBe(true)
        if (status === 202) expect({ hasCode, isTaken }).toEqual({ hasCode: true, isTaken: true })
        else if (status !== 0)
          expect({ hasCode, isTaken }).toEqual({ hasCode: false, isTaken: false })
        else if (isTaken) halfway++
      }
    }
    // Otherwise every kill came too late or too early to prove anything.
    if (lab.isFull) expect(halfway).toBeGreaterThan(0)
    return undefined
  },
}

export const quotaFaults: readonly Fault[] = [i3, i10]
