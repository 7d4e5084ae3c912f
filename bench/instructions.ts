/**
 * The cost of a check for Redis on any machine, in instructions of redis-server under valgrind (callgrind). Their
 * number differs by a few hundredths between equal runs, so a small change can be seen on a busy machine. Checks come
 * in batches of 64. Needs valgrind, and redis-server of the system.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { findFreePort } from '../src/dev/server-process.ts'
import { createLimiter, type RawPolicies } from '../src/limiter/index.ts'
import { batchedFloor, flexibleUnion, loadLimiterBefore, sortedSet } from './harness/contenders.ts'
import { openTable } from './harness/table.ts'

const perBatch = 64
/** Runs with so many batches and with three times as many. The difference is the cost of the batches alone. */
const batches = 10
const policies: RawPolicies = {
  captcha: [{ name: 'recipient', key: '{to}', sliding: ['1 per 60s', '5 per 1h', '10 per 24h'] }],
  busy: [{ name: 'busy', key: '{to}', sliding: ['90 per 1h', '100 per 24h'] }],
  budget: [{ name: 'budget', key: 'all', sliding: '100000 per 24h' }],
}
/** A future time, so that nothing expires at once. */
const startAt = Date.UTC(2099, 0)

/** Does one step, with its number. Steps with numbers below 0 prepare. */
type Act = (number: number) => Promise<unknown>
interface Work {
  readonly name: string
  /** How often `Act` prepares. */
  readonly before?: number
  open(redis: Redis): Act
}

const subject = (number: number) => `+86138${number}`

function limiterWork(name: string, create: typeof createLimiter): Work[] {
  const open = (redis: Redis, clock?: () => number) =>
    create({ policies, redis, rememberRefusalsMs: 0, deadlineMs: 60_000, ...(clock && { clock }) })
  return [
    {
      name: `${name}, a new subject`,
      open: (redis) => {
        const limiter = open(redis)
        return (number) => limiter.acquire('captcha', { to: subject(number) })
      },
    },
    {
      name: `${name}, the same with request ids`,
      open: (redis) => {
        const limiter = open(redis)
        return (number) =>
          limiter.acquire('captcha', { to: subject(number) }, { requestId: `${number}` })
      },
    },
    {
      name: `${name}, refused after one use`,
      before: perBatch,
      open: (redis) => {
        const limiter = open(redis)
        return (number) => limiter.acquire('captcha', { to: subject(Math.abs(number) % perBatch) })
      },
    },
    {
      name: `${name}, after 80 uses and more`,
      before: 80,
      open: (redis) => {
        const limiter = open(redis)
        return () => limiter.acquire('busy', { to: 'somebody' })
      },
    },
    {
      name: `${name}, a budget used all day`,
      before: 127,
      open: (redis) => {
        let now = startAt
        const limiter = open(redis, () => now)
        return (number) => {
          if (number < 0) now += 675_000
          return limiter.acquire('budget', {})
        }
      },
    },
  ]
}

/** The instructions of a redis-server that does this work, including its start and end. */
async function count(folder: string, work: Work, acts: number): Promise<number> {
  const port = await findFreePort()
  const flags = ['--save', '', '--appendonly', 'no', '--dir', folder, '--bind', '127.0.0.1']
  const callgrind = ['--tool=callgrind', `--callgrind-out-file=${join(folder, 'callgrind.out')}`]
  const command = [...callgrind, 'redis-server', '--port', String(port), ...flags]
  const server = spawn('valgrind', command, { stdio: ['ignore', 'ignore', 'pipe'] })
  let report = ''
  server.stderr.on('data', (chunk) => {
    report += chunk
  })
  const redis = new Redis(port, { retryStrategy: () => 100, maxRetriesPerRequest: null })
  redis.on('error', () => {})
  try {
    await redis.ping()
    const act = work.open(redis)
    for (let number = -(work.before ?? 0); number < 0; number++) await act(number)
    for (let first = 0; first < acts; first += perBatch) {
      await Promise.all(Array.from({ length: perBatch }, (_, at) => act(first + at)))
    }
    const ended = once(server, 'close')
    redis.shutdown('NOSAVE').catch(() => {})
    await ended
  } finally {
    redis.disconnect()
    server.kill('SIGKILL')
  }
  return Number(/Collected : (\d+)/.exec(report)?.[1])
}

if (spawnSync('valgrind', ['--version']).error) {
  console.error('valgrind is missing (Debian, Ubuntu: apt-get install valgrind)')
  process.exit(1)
}
const folder = mkdtempSync(join(tmpdir(), 'postern-instructions-'))
try {
  const before = await loadLimiterBefore(folder)
  const addRow = openTable('instructions of Redis per check', 'thousands', '× the floor')
  const works: Work[] = [
    ...[batchedFloor, sortedSet, flexibleUnion].map((open): Work => {
      const { name } = open(new Redis({ lazyConnect: true }))
      return {
        name,
        open: (redis) => {
          const { check } = open(redis)
          return (number) => check(subject(number))
        },
      }
    }),
    ...limiterWork('postern', createLimiter),
    ...(before ? limiterWork('the version before', before) : []),
  ]
  let floor = 0
  for (const work of works) {
    const few = await count(folder, work, batches * perBatch)
    const many = await count(folder, work, 3 * batches * perBatch)
    const each = (many - few) / (2 * batches * perBatch)
    floor ||= each
    addRow(work.name, (each / 1_000).toFixed(1), (each / floor).toFixed(2))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exit()
