/** Attacks on the limits: many callers at once, and a process that dies during a send. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Fleet, freshPhone, startFleet } from '../tools/fleet.ts'
import type { PosternProcess } from '../tools/processes.ts'
import { ownCluster } from '../tools/redis-topologies.ts'
import { eventually } from '../tools/wait.ts'
import type { Fault, Lab } from './fault.ts'

const perRecipient = 5
const perScene = 8

/** A wider rule beside the recipient's limit. A refusal by the first rule must not count here. */
const twoLimits = {
  captcha: [
    { name: 'recipient', key: '{channel}:{to}', sliding: `${perRecipient} per 1h` },
    { name: 'scene', key: '{scene}', sliding: `${perScene} per 1h` },
  ],
  notice: [],
  check: [],
}

/** The longest time in which a busy machine may spoil rounds with a 503. */
const roundsWithinMs = 50_000

async function proveExactness(fleet: Fleet, processes: number, lab: Lab): Promise<void> {
  const apis = fleet.apis.slice(0, processes)
  const untilMs = performance.now() + roundsWithinMs
  // A wrong round throws and is not repeated.
  while (!(await isExact(fleet, apis, `scene-${lab.between(0, 1e9)}`))) {
    if (performance.now() > untilMs) throw new Error('somebody heard 503 in every round')
  }
}

/**
 * One round, with new numbers and a new scene. Never more than the limit are accepted. Exactly as many are accepted,
 * unless a caller got 503: that gives the use back after others got 429. Returns false for such a round.
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
  // A row that was closed because its caller got 503 before the commit is not counted.
  await eventually(
    async () => {
      const [rows] = await fleet.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM notice WHERE recipient = $1 AND state = 'pending'`,
        [to],
      )
      expect(rows?.count).toBe(accepted)
    },
    { everyMs: 100 },
  )
  if (unavailable > 0) return false
  expect(accepted).toBe(perRecipient)
  // The scene's rule lost only the uses of accepted sends.
  const others: number[] = []
  for (let index = 0; index <= perScene - perRecipient; index++) {
    others.push(await send(freshPhone(), index))
  }
  if (others.includes(503)) return false
  expect(others).toEqual([202, 202, 202, 429])
  return true
}

/** The first requests of a process are slow for other reasons. So it gets many requests before, with any answers. */
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

/** After a kill: the state of a send without an answer, read through a process that lives. */
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
      // The first request of a process is slow for other reasons.
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
