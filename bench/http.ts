/**
 * `npm run bench`: what a request costs, beside what it could cost at least.
 *
 * Accepted sends, refused sends and checks per second at 64 connections, each in the same run beside a
 * bare Express JSON echo, a bare Express 429, and a hand-written route doing one EVALSHA, one INSERT
 * and one queue.add, with a hand-written worker where ours runs too. Every variant is a process of its
 * own; rounds take turns, so that a slow minute of the machine touches all alike; the medians are
 * compared. Read the ratios, not the figures.
 *
 * Beside the rates stands the processor time per request: of the API process, of Redis and of
 * PostgreSQL. It says the same on a busy machine (Linux only).
 *
 *   npx node bench/http.ts [rounds] [seconds per measurement] [only variants whose name contains this]
 */
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import pg from 'pg'
import { createCodeStore } from '../src/captcha/code-store.ts'
import { createSecrets } from '../src/crypto/secrets.ts'
import { type Bench, type BenchProcess, key, openBench, secret } from './harness/bench.ts'
import { cpuMs, median } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const rounds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 3)
const wanted = process.argv[4] ?? ''
const connections = 64

const policyFile = {
  code: { length: 4, ttl: '5m', triesPerCode: 3 },
  policies: {
    captcha: [
      { name: 'duplicate', key: '{dedupe}', fixed: '2 per 60s' },
      {
        name: 'recipient',
        key: '{channel}:{to}',
        sliding: ['1 per 60s', '5 per 1h', '10 per 24h'],
      },
    ],
    notice: [],
    check: [
      {
        name: 'guesses',
        key: '{channel}:{to}:{ip}',
        lockout: { limit: 3, window: '5m', lock: '15m' },
      },
    ],
  },
  providers: { sandbox: { kind: 'sandbox' } },
  routes: { email: [{ use: ['sandbox'] }], sms: [{ use: ['sandbox'] }] },
}

interface Result {
  perSecond: number
  apiCpuUs: number
  redisCpuUs: number
  postgresCpuUs: number
  p50Ms: number
  p99Ms: number
  statuses: Record<string, number>
}

const bench = await openBench()
try {
  await compare(bench)
} finally {
  await bench.close()
}

async function compare(bench: Bench): Promise<void> {
  const { redis: redisServer, postgres: postgresServer, start, closeLater } = bench
  const redis = new Redis(redisServer.url)
  closeLater(() => redis.disconnect())
  const database = new pg.Client({ connectionString: postgresServer.url })
  database.on('error', () => {})
  await database.connect()
  closeLater(() => database.end())

  const echo = await start('bench/targets/echo.ts')
  const oneByOne = await start('bench/targets/one-by-one.ts')
  const api = await start('src/main/api.ts', policyFile)

  const codes = createCodeStore(redis, createSecrets(secret), {
    keyPrefix: 'postern:',
    ttlMs: 600_000,
    triesPerCode: 3,
  })
  /** Codes "0000" for the recipients a load of this salt will check. */
  async function rememberCodes(salt: number): Promise<void> {
    const prefix = `+861${38 + (salt % 2)}`
    const count = 12_000 * seconds
    for (let index = 0; index < count; index += 1_000) {
      await Promise.all(
        Array.from({ length: Math.min(1_000, count - index) }, (_, offset) => {
          const digits = String(salt * 1_000_003 + index + offset)
            .slice(-8)
            .padStart(8, '0')
          const owner = {
            app: 'default',
            scene: 'signup',
            channel: 'sms' as const,
            to: prefix + digits,
          }
          return codes.remember(owner, '01a1fdac-16f8-75c6-b2de-26f19df3a927', '0000')
        }),
      )
    }
  }

  let salt = 1
  const allVariants: { name: string; run: () => Promise<Result> }[] = [
    { name: 'bare Express echo', run: () => load(echo, '/echo', 'send') },
    { name: 'bare Express 429', run: () => load(echo, '/429', 'send') },
    { name: 'EVALSHA + INSERT + add, one by one', run: () => load(oneByOne, '/captchas', 'send') },
    { name: 'accepted sends', run: () => load(api, '/v1/captchas', 'send') },
    { name: 'refused sends', run: () => load(api, '/v1/captchas', 'same') },
    { name: 'checks of a right code', run: () => load(api, '/v1/captchas/check', 'right') },
    { name: 'checks without a code', run: () => load(api, '/v1/captchas/check', 'gone') },
  ]
  const variants = allVariants.filter(
    ({ name }) => name.startsWith('bare') || name.startsWith('EVALSHA') || name.includes(wanted),
  )
  const results = new Map<string, Result[]>(variants.map(({ name }) => [name, []]))

  async function load({ url, pid }: BenchProcess, path: string, kind: string): Promise<Result> {
    salt++
    if (kind === 'right') await rememberCodes(salt)
    const args = ['bench/load.ts', url, seconds, connections, path, kind, key, salt].map(String)
    const processes = () => [pid, redisServer.pid, postgresServer.pid].map(cpuMs)
    const before = processes()
    const { stdout } = await promisify(execFile)(process.execPath, args)
    const result = JSON.parse(stdout) as Result
    const requests = Object.values(result.statuses).reduce((sum, count) => sum + count, 0)
    const [apiCpuUs = 0, redisCpuUs = 0, postgresCpuUs = 0] = processes().map(
      (ms, index) => ((ms - (before[index] ?? 0)) * 1_000) / requests,
    )
    return { ...result, apiCpuUs, redisCpuUs, postgresCpuUs }
  }

  /** Until the workers have carried what the last load left, so that they don't take part in the next. */
  async function drain(): Promise<void> {
    const queues = ['{postern:queue}:send-sms', 'bull:baseline']
    const lists = queues.flatMap((queue) => [`${queue}:wait`, `${queue}:active`])
    const lengths = () => Promise.all(lists.map((list) => redis.llen(list)))
    const untilMs = performance.now() + 60_000
    while ((await lengths()).some((length) => length > 0)) {
      if (performance.now() > untilMs) throw new Error('the workers do not come to an end')
      await sleep(50)
    }
  }

  async function measure(label: string, isCarried: boolean): Promise<void> {
    for (let round = 0; round <= rounds; round++) {
      for (const { name, run } of variants) {
        const result = await run()
        if (isCarried) await drain()
        // The first round warms up.
        if (round > 0) results.get(name)?.push(result)
      }
      // What a round left on the queue must not grow into the next.
      await redis.flushdb()
    }
    printTable(label)
    for (const all of results.values()) all.length = 0
  }

  await printBytesPerSend()
  await measure('no worker running', false)
  await start('src/main/worker.ts', policyFile)
  await start('bench/targets/one-by-one-worker.ts')
  await measure('both workers running', true)

  async function printBytesPerSend(): Promise<void> {
    await redis.flushdb()
    await load(api, '/v1/captchas', 'send')
    await redis.flushdb()
    const before = await sizes()
    const { statuses } = await load(api, '/v1/captchas', 'send')
    const after = await sizes()
    const sends = statuses[202] ?? 1
    console.log(
      `bytes per accepted send, nothing sent yet: Redis ${Math.round((after.redis - before.redis) / sends)}` +
        `, PostgreSQL ${Math.round((after.postgres - before.postgres) / sends)}\n`,
    )
    await redis.flushdb()
  }

  async function sizes() {
    const memory = await redis.info('memory')
    const { rows } = await database.query(
      "SELECT sum(pg_total_relation_size(inhrelid))::float8 AS bytes FROM pg_inherits WHERE inhparent = 'notice'::regclass",
    )
    return {
      redis: Number(/used_memory:(\d+)/.exec(memory)?.[1]),
      postgres: rows[0].bytes as number,
    }
  }

  function printTable(label: string): void {
    const names = variants.map(({ name }) => name)
    const medianOf = (name: string, pick: (result: Result) => number) =>
      median((results.get(name) ?? []).map(pick))
    const echoRate = medianOf('bare Express echo', (result) => result.perSecond)
    const refusalRate = medianOf('bare Express 429', (result) => result.perSecond)
    const oneByOneRate = medianOf(
      'EVALSHA + INSERT + add, one by one',
      (result) => result.perSecond,
    )
    const addRow = openTable(
      `${label}: medians of ${rounds} rounds of ${seconds} s, ${connections} connections`,
      'per second',
      '/ echo',
      '/ bare 429',
      '/ one by one',
      'p50 ms',
      'p99 ms',
      'API µs',
      'Redis µs',
      'PostgreSQL µs',
      'statuses',
    )
    for (const name of names) {
      const rate = medianOf(name, (result) => result.perSecond)
      addRow(
        name,
        rate.toFixed(0),
        (rate / echoRate).toFixed(2),
        (rate / refusalRate).toFixed(2),
        (rate / oneByOneRate).toFixed(2),
        medianOf(name, (result) => result.p50Ms).toFixed(1),
        medianOf(name, (result) => result.p99Ms).toFixed(1),
        medianOf(name, (result) => result.apiCpuUs).toFixed(0),
        medianOf(name, (result) => result.redisCpuUs).toFixed(0),
        medianOf(name, (result) => result.postgresCpuUs).toFixed(0),
        Object.keys(results.get(name)?.at(-1)?.statuses ?? {}).join(' '),
      )
    }
  }
}
