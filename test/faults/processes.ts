/** Faults of Postern's processes: killed, stopped, blocked, and with other clocks or versions. */
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect, inject } from 'vitest'
import { brokenOutputs, openBrokenOutput } from '../tools/broken-output.ts'
import { admin, type Fleet, freshPhone, startFleet } from '../tools/fleet.ts'
import { childrenOf } from '../tools/own-servers.ts'
import { type PosternProcess, startProcess } from '../tools/processes.ts'
import { eventually } from '../tools/wait.ts'
import { expectAllWorks, type Fault, type Lab, strikeUnderLoad } from './fault.ts'
import { settleOne } from './ledger.ts'

/** Ends a random process as named, and starts another, as a supervisor would. */
async function replace(
  fleet: Fleet,
  kind: 'api' | 'worker',
  lab: Lab,
  end: (victim: PosternProcess) => Promise<unknown>,
): Promise<void> {
  const processes = kind === 'api' ? fleet.apis : fleet.workers
  const [victim] = processes.splice(lab.between(0, processes.length), 1)
  await Promise.all([
    victim && end(victim),
    kind === 'api' ? fleet.startApi() : fleet.startWorker(),
  ])
}

const kill = (victim: PosternProcess) => victim.kill()

async function killSome(kind: 'api' | 'worker', fleet: Fleet, lab: Lab): Promise<void> {
  for (let kills = lab.length(2, 8); kills > 0; kills--) {
    await sleep(lab.between(50, 900))
    await replace(fleet, kind, lab, kill)
  }
}

const welcome = (to: string) => ({
  channel: 'sms',
  to,
  template: 'welcome',
  params: { name: 'Ada' },
})

const f1: Fault = {
  id: 'F1',
  breaks: 'API killed at any moment, and one between insert and enqueue',
  holds: 'every 202 ends in one final state; the row that was never queued is carried within 15 s',
  proves: 'I1, I2',
  strike: (fleet, lab) => killSome('api', fleet, lab),
  async prove(lab) {
    const { fleet, report } = await strikeUnderLoad(lab, (fleet) => killSome('api', fleet, lab), {
      kills: true,
      perSecond: lab.length(50, 200),
      apis: 2,
    })
    // A Redis user without rights on the keys of the queue. The limiter and the code store work, and adding a job
    // fails. Then the API is killed before it could queue what it has committed.
    const redis = new Redis(fleet.redis.url)
    const [, rules = ''] = (await redis.acl('LIST')) as string[]
    try {
      await redis.acl('SETUSER', 'default', 'resetkeys', '~postern:*')
      const api = fleet.apis[0] as PosternProcess
      const { status, body } = await fleet.post('/v1/notices', welcome(freshPhone()), api)
      expect(status).toBe(202)
      await eventually(() => api.output().includes('not queued'))
      await api.kill()
      await redis.acl('SETUSER', 'default', 'allkeys')
      expect(await settleOne(fleet, body.id, lab.length(30_000, 15_000))).toBe('sent')
    } finally {
      redis.disconnect()
    }
    expect(rules).toBe('')
    return report
  },
}

const f2: Fault = {
  id: 'F2',
  breaks: 'workers killed before, during and after the call of a provider that takes 50 ms',
  holds: 'every 202 ends in one final state, and a message is repeated at most once',
  proves: 'I1, I2, I8',
  strike: (fleet, lab) => killSome('worker', fleet, lab),
  async prove(lab) {
    const { fleet, report } = await strikeUnderLoad(
      lab,
      async (fleet) => {
        fleet.farEnd.behave = async () => {
          await sleep(50)
          return { status: 200 }
        }
        await killSome('worker', fleet, lab)
      },
      {
        ...{ kills: true, mayDouble: true, perSecond: lab.length(100, 200), workers: 2 },
        // The claim of a dead worker lasts for twice this time.
        policyFile: { delivery: { timeout: lab.isFull ? '5s' : '2s' } },
      },
    )
    expect(Math.max(...fleet.farEnd.taken.values())).toBeLessThanOrEqual(2)
    expect(report.final.sent).toBe(report.accepted)
    return report
  },
}

const f3: Fault = {
  id: 'F3',
  breaks: 'one message kills every worker that carries it',
  holds: 'its row ends failed after a bounded number of tries, and the others flow',
  proves: 'I1, I8',
  async prove() {
    const fleet = await startFleet({ policyFile: { delivery: { timeout: '1s' } } })
    const poison = freshPhone()
    const deadly: PosternProcess[] = []
    fleet.farEnd.behave = async ({ to }) => {
      if (to !== poison) return { status: 200 }
      const [victim] = fleet.workers.splice(0, 1)
      if (victim) deadly.push(victim)
      await Promise.all([victim?.kill(), fleet.startWorker()])
      return 'hang'
    }
    const { body } = await fleet.post('/v1/notices', welcome(poison))
    expect(await settleOne(fleet, body.id, 80_000)).toBe('failed')
    expect(deadly.length).toBeGreaterThan(0)
    expect(fleet.farEnd.calls.get(body.id)).toBeLessThanOrEqual(2)
    await expectAllWorks(fleet)
    return undefined
  },
}

const terminate = async (victim: PosternProcess) => expect(await victim.terminate()).toBe(0)

const f22: Fault = {
  id: 'F22',
  breaks: 'SIGTERM under load, to every process in turn; and twice to one whose provider hangs',
  holds: 'nothing is lost or doubled and all exit 0; the second signal ends at once',
  proves: 'I1, I13',
  async strike(fleet, lab) {
    await replace(fleet, 'api', lab, terminate)
    await replace(fleet, 'worker', lab, terminate)
  },
  async prove(lab) {
    const { fleet, report } = await strikeUnderLoad(
      lab,
      async (fleet) => {
        for (let round = lab.length(1, 4); round > 0; round--) {
          for (const kind of ['api', 'worker'] as const) {
            await replace(fleet, kind, lab, terminate)
          }
        }
      },
      {
        kills: true,
        perSecond: lab.length(50, 200),
        apis: 2,
        workers: 2,
        // The first signal waits this long for the provider below.
        policyFile: { delivery: { timeout: '15s' } },
      },
    )
    fleet.farEnd.behave = () => 'hang'
    const { body } = await fleet.send(freshPhone())
    await eventually(() => fleet.farEnd.calls.has(body.id))
    const busy = fleet.workers
    for (const worker of busy) worker.signal('SIGTERM')
    // A worker without the call may have ended already.
    const ended = () => ({ reasons: ['stopping'] })
    for (const worker of busy) {
      await eventually(async () => {
        const ready = admin(worker, '/readyz').then((response) => response.json())
        expect(await ready.catch(ended)).toMatchObject({ reasons: ['stopping'] })
      })
    }
    // Within half a second, both signals would count as one.
    await sleep(700)
    const askedAgainMs = performance.now()
    for (const worker of busy) worker.signal('SIGTERM')
    const codes = await Promise.all(busy.map((worker) => worker.exited))
    expect(performance.now() - askedAgainMs).toBeLessThan(12_000)
    expect(codes).toContain(1)
    return report
  },
}

async function block(victim: PosternProcess | undefined, forMs: number): Promise<void> {
  victim?.signal('SIGSTOP')
  await sleep(forMs)
  victim?.signal('SIGCONT')
}

const f23: Fault = {
  id: 'F23',
  breaks: 'a worker and an API do nothing for longer than claims and locks last',
  holds:
    'others take over, the late outcome changes nothing, and every 202 ends in one final state',
  proves: 'I1, I8',
  strike: (fleet, lab) => block(lab.pick(fleet.workers), lab.length(2_000, 15_000)),
  async prove(lab) {
    const { fleet, report } = await strikeUnderLoad(
      lab,
      async (fleet) => {
        fleet.farEnd.behave = async () => {
          await sleep(50)
          return { status: 200 }
        }
        await Promise.all([block(fleet.workers[0], 16_500), block(fleet.apis[0], 2_000)])
      },
      // Calls that were under way at the stop are repeated by another worker, because their outcome is unknown.
      {
        kills: true,
        mayDouble: true,
        perSecond: lab.length(50, 100),
        apis: 2,
        workers: 2,
        policyFile: { delivery: { timeout: '1s' } },
      },
    )
    expect(Math.max(...fleet.farEnd.taken.values())).toBeLessThanOrEqual(2)
    return report
  },
}

const f24: Fault = {
  id: 'F24',
  breaks: 'something nobody expected is thrown in a request and in a job (the table is gone)',
  holds:
    '500 with a fixed sentence, the quota given back, the process stays, the job is tried again',
  proves: 'I9, I14',
  async prove() {
    const fleet = await startFleet({ workers: 0 })
    const to = freshPhone()
    const waiting = await fleet.send(freshPhone())
    await fleet.query('ALTER TABLE notice RENAME TO notice_away')
    // Not ready without its table, but it works.
    await fleet.startWorker({ isReady: async (worker) => (await admin(worker, '/livez')).ok })
    const { status, body } = await fleet.send(to)
    expect({ status, code: body.code }).toEqual({ status: 500, code: 'internal' })
    expect(JSON.stringify(body)).not.toMatch(/notice_away|relation|does not exist/)
    await eventually(() => /job failed/.test(fleet.workers[0]?.output() ?? ''))
    await fleet.query('ALTER TABLE notice_away RENAME TO notice')
    // This number may get one code a minute. If the 500 had kept the use, this would be 429.
    expect((await fleet.send(to)).status).toBe(202)
    expect(await settleOne(fleet, waiting.body.id)).toBe('sent')
    expect([...fleet.apis, ...fleet.workers].some((process) => process.hasExited())).toBe(false)
    return undefined
  },
}

const f25: Fault = {
  id: 'F25',
  breaks: 'clocks ten minutes off, an API behind and a worker ahead, then the other way round',
  holds: 'limits hold across them, and messages are sent in time',
  proves: 'I7, I17',
  async prove() {
    const fleet = await startFleet({ apis: 0, workers: 0 })
    const shifted = (minutes: number) => ({
      env: {
        NODE_OPTIONS: `--import=${new URL('./shift-clock.ts', import.meta.url)}`,
        CLOCK_SHIFT_MS: String(minutes * 60_000),
      },
    })
    const behind = await fleet.startApi(shifted(-10))
    const ahead = await fleet.startApi(shifted(10))
    await eventually(async () => (await fleet.query('SELECT 1 FROM api_key')).length > 0)
    await fleet.startWorker(shifted(10))
    for (const [first, second] of [
      [behind, ahead],
      [ahead, behind],
    ]) {
      const to = freshPhone()
      const { status, body } = await fleet.send(to, first)
      expect(status).toBe(202)
      const refused = await fleet.send(to, second)
      expect(refused.status).toBe(429)
      expect(refused.body.retryAfterMs).toBeGreaterThan(50_000)
      expect(refused.body.retryAfterMs).toBeLessThanOrEqual(60_000)
      expect(await settleOne(fleet, body.id)).toBe('sent')
      const check = await fleet.post(
        '/v1/captchas/check',
        { channel: 'sms', to, code: 'x'.repeat(4) },
        second,
      )
      expect([400, 422]).toContain(check.status)
    }
    return undefined
  },
}

const f27: Fault = {
  id: 'F27',
  breaks: 'the schema and the jobs of the next version while this one still runs',
  holds: 'it works on; a process of the next version is not ready before its migration',
  proves: 'I1',
  async prove() {
    const fleet = await startFleet()
    // A next version may do this to a running version: add columns and tables, and more data in jobs.
    await fleet.query(`
      ALTER TABLE notice ADD COLUMN next_version text DEFAULT 'x', ADD COLUMN other jsonb;
      CREATE TABLE of_next_version ();
      INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name, started_at, applied_steps_count)
        VALUES ('next', 'next', now(), '29990101000000_next', now(), 1)`)
    await expectAllWorks(fleet)
    const later = await fleet.startApi()
    expect((await admin(later, '/readyz')).status).toBe(200)
    await expectAllWorks(fleet)

    // The other way round: with the schema of a previous version, a process is not ready and reports why.
    await fleet.query(
      `DELETE FROM _prisma_migrations WHERE migration_name <> '29990101000000_next'`,
    )
    const { reasons } = (await (await admin(later, '/readyz')).json()) as { reasons: string[] }
    expect(reasons.join()).toMatch(/migrations not applied: /)
    return undefined
  },
}

const f28: Fault = {
  id: 'F28',
  breaks: 'standard output of an API and a worker is stalled, closed, or on a full disk',
  holds: 'every send is accepted and sent, what is not logged is counted, SIGTERM ends with code 0',
  proves: 'I1, I13',
  async prove(lab) {
    for (const how of brokenOutputs) {
      const fleet = await startFleet({ apis: 0, workers: 0, env: { LOG_LEVEL: 'debug' } })
      for (const start of [fleet.startApi, fleet.startWorker]) {
        const { fd, handOver } = openBrokenOutput(how)
        await start({ stdout: fd })
        handOver()
      }
      await eventually(async () => (await fleet.query('SELECT 1 FROM api_key')).length > 0)
      const [api, worker] = [...fleet.apis, ...fleet.workers] as [PosternProcess, PosternProcess]
      // Much more than fits into a pipe.
      for (let left = lab.length(600, 6_000); left > 0; left -= 50) {
        const replies = await Promise.all(
          Array.from({ length: 50 }, () => fleet.send(freshPhone(), api)),
        )
        expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 202))
      }
      await eventually(
        async () => (await fleet.query(`SELECT 1 FROM notice WHERE state <> 'sent'`)).length === 0,
      )
      if (how !== 'stalled') {
        await eventually(async () =>
          /^postern_log_lines_dropped_total\{.*\} [1-9]/m.test(
            await (await admin(api, '/metrics')).text(),
          ),
        )
      }
      expect(await Promise.all([api.terminate(), worker.terminate()])).toEqual([0, 0])
    }
    return undefined
  },
}

const f34: Fault = {
  id: 'F34',
  breaks:
    'the demo is told to stop while its standard output is stalled, closed, or on a full disk',
  holds: 'it ends with code 0 and leaves no server and no worker behind',
  proves: 'I13',
  async prove() {
    for (const how of brokenOutputs) {
      const { fd, handOver } = openBrokenOutput(how)
      const folder = await mkdtemp(join(inject('runFolder'), 'demo-'))
      const demo = await startProcess('demo', {
        stdout: fd,
        env: { POSTERN_DATA: folder, LOG_LEVEL: 'debug' },
        args: ['--no-guide'],
      })
      handOver()
      const servers = childrenOf(demo.pid)
      // PostgreSQL, Redis and the worker.
      expect(servers).toHaveLength(3)
      // Logged requests, more than fit into a pipe.
      for (let left = 500; left > 0; left -= 50) {
        await Promise.all(
          Array.from({ length: 50 }, async () => {
            const answer = await fetch(`${demo.url}/nothing`, { headers: { connection: 'close' } })
            expect(answer.status).toBe(404)
            await answer.body?.cancel()
          }),
        )
      }
      expect(await demo.terminate()).toBe(0)
      expect(servers.filter(isRunning)).toEqual([])
    }
    return undefined
  },
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export const processFaults: readonly Fault[] = [f1, f2, f3, f22, f23, f24, f25, f27, f28, f34]
