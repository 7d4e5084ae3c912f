/** Faults of Redis: gone, silent, refusing, empty, and replaced by another. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect } from 'vitest'
import { admin, type Fleet, freshPhone, startFleet } from '../tools/fleet.ts'
import type { OwnServer } from '../tools/own-servers.ts'
import type { PosternProcess } from '../tools/processes.ts'
import { ownCluster, ownSentinel } from '../tools/redis-topologies.ts'
import { eventually } from '../tools/wait.ts'
import {
  answersWithinMs,
  expectAllWorks,
  expectUnavailable,
  type Fault,
  type Lab,
  type LoadOptions,
  strikeUnderLoad,
} from './fault.ts'
import { settleOne } from './ledger.ts'
import { callPeople } from './people.ts'

/**
 * While Redis is away, sends and checks get 503 in time. Nothing is lost, and everything works again without help.
 */
async function proveOutage(
  lab: Lab,
  strike: (fleet: Fleet, during: () => Promise<void>) => Promise<void>,
  options: LoadOptions = {},
) {
  /** `to` has a code. Without a code, a Redis that can still be read would be enough for the answer. */
  const during = (fleet: Fleet, to: string) => async () => {
    await expectUnavailable(fleet, lab)
    const check = await fleet.post('/v1/captchas/check', { channel: 'sms', to, code: '0000' })
    expect(check.status).toBe(503)
    expect(check.tookMs).toBeLessThan(answersWithinMs(lab))
  }
  const { report, p99Ms } = await strikeUnderLoad(
    lab,
    async (fleet) => {
      const to = freshPhone()
      expect((await fleet.post('/v1/captchas', { channel: 'sms', to })).status).toBe(202)
      return strike(fleet, during(fleet, to))
    },
    // A Redis that dies loses jobs under way. Their rows are sent again.
    { kills: true, mayDouble: true, ...options },
  )
  expect(report.refused[503]).toBeGreaterThan(0)
  expect(p99Ms).toBeLessThan(answersWithinMs(lab))
  return report
}

async function outage(
  lab: Lab,
  begin: () => unknown,
  end: () => unknown,
  during = async () => {},
): Promise<void> {
  const untilMs = performance.now() + lab.length(2_000, 20_000)
  await begin()
  try {
    await during()
    await sleep(Math.max(0, untilMs - performance.now()))
  } finally {
    await end()
  }
}

/** In a cluster, one master is away. */
function killed({ redisMasters }: Fleet, lab: Lab, during?: () => Promise<void>): Promise<void> {
  const server = lab.pick(redisMasters)
  return outage(
    lab,
    () => server.kill(),
    () => server.start(),
    during,
  )
}

function frozen({ redisMasters }: Fleet, lab: Lab, during?: () => Promise<void>): Promise<void> {
  const server = lab.pick(redisMasters)
  return outage(
    lab,
    () => server.freeze(),
    () => server.thaw(),
    during,
  )
}

const away = 'sends and checks are 503 within 2.5 s, nothing is lost, all works again by itself'

const f4: Fault = {
  id: 'F4',
  breaks: 'Redis killed and away for 20 s',
  holds: away,
  proves: 'I1, I2, I9',
  strike: (fleet, lab) => killed(fleet, lab),
  prove: (lab) => proveOutage(lab, (fleet, during) => killed(fleet, lab, during)),
}

const f5: Fault = {
  id: 'F5',
  breaks: 'Redis frozen for 20 s with its connections open',
  holds: away,
  proves: 'I1, I2, I9',
  strike: (fleet, lab) => frozen(fleet, lab),
  prove: (lab) => proveOutage(lab, (fleet, during) => frozen(fleet, lab, during)),
}

const f6: Fault = {
  id: 'F6',
  breaks: 'Redis absent when the processes start',
  holds: 'they are up, readyz is 503 and says why, and they recover alone',
  proves: 'I9',
  async prove(lab) {
    const fleet = await startFleet({ apis: 0, workers: 0 })
    await fleet.redis.stop()
    const isReady = async (process: PosternProcess) => (await admin(process, '/livez')).ok
    const [api, worker] = await Promise.all([
      fleet.startApi({ isReady }),
      fleet.startWorker({ isReady }),
    ])
    for (const process of [api, worker]) {
      await eventually(async () => {
        const response = await admin(process, '/readyz')
        expect(response.status).toBe(503)
        expect(await response.json()).toMatchObject({ reasons: ['redis is out of reach'] })
      })
    }
    await expectUnavailable(fleet, lab, 3)
    await fleet.redis.start()
    await eventually(async () => (await admin(api, '/readyz')).status === 200)
    await expectAllWorks(fleet)
    return undefined
  },
}

const f7: Fault = {
  id: 'F7',
  breaks: 'Redis answers OOM, then READONLY, then LOADING',
  holds: away,
  proves: 'I1, I2, I9',
  async prove(lab) {
    return proveOutage(lab, async ({ redis }, during) => {
      const client = new Redis(redis.url)
      client.on('error', () => {})
      try {
        await client.config('SET', 'maxmemory', '1')
        await during()
        await client.config('SET', 'maxmemory', '0')
        await sleep(500)
        await client.replicaof('127.0.0.1', '1')
        await during()
        await client.replicaof('NO', 'ONE')
        await sleep(500)
        const pipeline = client.pipeline()
        for (let key = 0; key < 5_000; key++) pipeline.set(`filler:${key}`, 'x')
        await pipeline.exec()
      } finally {
        client.disconnect()
      }
      await redis.stop()
      // Redis needs this time for each command of its log when it starts. It answers LOADING after each thousand.
      const slowly = ['--key-load-delay', '300']
      const loaded = redis.start(slowly)
      await during()
      await loaded
    })
  },
}

const f8: Fault = {
  id: 'F8',
  breaks: 'Redis emptied between the 202 and the send',
  holds: 'a captcha ends expired because its code is gone, a notice is carried within 15 s',
  proves: 'I1, I7',
  async strike({ redisMasters }, lab) {
    const client = new Redis(lab.pick(redisMasters).url)
    client.on('error', () => {})
    await client.flushall().finally(() => client.disconnect())
  },
  async prove(lab) {
    const fleet = await startFleet({ workers: 0 })
    const captcha = await fleet.send(freshPhone())
    const notice = await fleet.post('/v1/notices', {
      channel: 'sms',
      to: freshPhone(),
      template: 'welcome',
      params: { name: 'Ada' },
    })
    await fleet.redis.stop()
    await fleet.redis.start(['--appendonly', 'no'])
    await fleet.startWorker()
    const withinMs = lab.length(30_000, 15_000)
    expect(await settleOne(fleet, notice.body.id, withinMs)).toBe('sent')
    expect(await settleOne(fleet, captcha.body.id, withinMs)).toBe('expired')
    expect(fleet.farEnd.calls.has(captcha.body.id)).toBe(false)
    return undefined
  },
}

const f9: Fault = {
  id: 'F9',
  breaks: 'Redis set to evict keys',
  holds: 'not ready, and the reason says what to set',
  proves: 'I2',
  async prove() {
    const fleet = await startFleet()
    await fleet.redis.stop()
    await fleet.redis.start(['--maxmemory-policy', 'allkeys-lru'])
    for (const process of [...fleet.apis, ...fleet.workers]) {
      await eventually(async () => {
        const response = await admin(process, '/readyz')
        const { reasons = [] } = (await response.json()) as { reasons?: string[] }
        return response.status === 503 && reasons.some((reason) => reason.includes('noeviction'))
      })
    }
    return undefined
  },
}

const f10: Fault = {
  id: 'F10',
  breaks: 'the primary of a Redis with sentinels killed',
  holds: 'the replica takes its place, nothing is lost, sends are accepted again within seconds',
  proves: 'I1, I2, I9',
  async prove(lab) {
    const { url, primary } = await ownSentinel()
    const { report } = await strikeUnderLoad(
      lab,
      async (fleet) => {
        await primary.kill()
        await eventually(async () => (await fleet.send(freshPhone())).status === 503)
        await eventually(async () => (await fleet.send(freshPhone())).status === 202, {
          everyMs: 100,
        })
      },
      { redisUrl: url, kills: true, mayDouble: true },
    )
    expect(report.refused[503]).toBeGreaterThan(0)
    return report
  },
}

const f11: Fault = {
  id: 'F11',
  breaks: 'one node of a three-node cluster away',
  holds: 'sends are 503 within 2.5 s, nothing is lost, all works again by itself',
  proves: 'I1, I2, I9',
  async prove(lab) {
    const { url, nodes } = await ownCluster()
    const node = lab.pick(nodes)
    const { report, p99Ms } = await strikeUnderLoad(
      lab,
      async (fleet) => {
        await outage(
          lab,
          () => node.kill(),
          () => node.start(),
          async () => {
            // The nodes notice within their time-out that some slots have no node.
            await eventually(() => expectUnavailable(fleet, lab, 10), { withinMs: 60_000 })
          },
        )
      },
      { redisUrl: url, kills: true, mayDouble: true },
    )
    expect(report.refused[503]).toBeGreaterThan(0)
    expect(p99Ms).toBeLessThan(answersWithinMs(lab))
    return report
  },
}

/** Redis ends the connections of its clients at random, as a proxy or a time limit does. */
async function endConnections(nodes: readonly OwnServer[], lab: Lab): Promise<void> {
  const untilMs = performance.now() + lab.length(4_000, 60_000)
  while (performance.now() < untilMs) {
    const client = new Redis(lab.pick(nodes).url, { maxRetriesPerRequest: 0 })
    client.on('error', () => {})
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes').catch(() => {})
    client.disconnect()
    await sleep(lab.between(5, 50))
  }
}

const f47: Fault = {
  id: 'F47',
  breaks: 'the connections to a cluster are ended at random',
  holds:
    'a 503 changes nothing: every code that is typed again passes, and every login has its tries',
  proves: 'I4, I5, I23',
  strike: (fleet, lab) => endConnections(fleet.redisMasters, lab),
  async prove(lab) {
    const { url, nodes } = await ownCluster()
    const login = [
      { name: 'tries', key: '{subject}', lockout: { limit: 3, window: '5m', lock: '15m' } },
    ]
    const fleet = await startFleet({
      redisUrl: url,
      apis: 2,
      policyFile: { policies: { captcha: [], notice: [], check: [], login } },
    })
    const people = callPeople(fleet)
    async function logIn(count: number): Promise<void> {
      const attempt = { policy: 'login', subject: `person ${count}` }
      for (const triesLeft of [2, 1, 0]) {
        const { status, answer } = await people.post('/v1/attempts', attempt, count % 2)
        expect({ status, ...answer }).toMatchObject({ status: 200, triesLeft })
      }
    }
    const oneWay = (count: number) =>
      count % 3 === 0 ? logIn(count) : people.askAndCheck(count % 2)
    people.start(oneWay, 100)
    await endConnections(nodes, lab)
    await people.end()
    return undefined
  },
}

export const redisFaults: readonly Fault[] = [f4, f5, f6, f7, f8, f9, f10, f11, f47]
