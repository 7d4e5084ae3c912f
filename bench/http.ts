/**
 * `npm run bench`: the cost of a request, compared with routes that are written by hand in Express.
 *
 * The cost is processor time per request: of the API process, of Redis and of PostgreSQL (Linux only). It is the same
 * on a busy machine, and rates are not. Each variant is a separate process, and there are two of each: by hand,
 * Postern, Postern, by hand. A process that starts later can need a third more. So the rounds alternate between the
 * first two and the last two, and between both orders of the variants. The medians of all rounds are compared.
 *
 *   npx node bench/run.ts http [--rounds 6] [--seconds 2] [--warm-up 20000] [--only refused]
 *   npx node bench/run.ts http --processes 1,2,4     accepted sends with so many API processes, and nothing else
 *   … --postgres commit_delay=500,commit_siblings=3  with these settings of PostgreSQL
 */
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { Redis } from 'ioredis'
import pg from 'pg'
import { createCodeStore } from '../src/captcha/code-store.ts'
import { createSecrets } from '../src/crypto/secrets.ts'
import { type BenchProcess, key, openBench, secret } from './harness/bench.ts'
import { cpuMs, median } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '6' },
    seconds: { type: 'string', default: '2' },
    'warm-up': { type: 'string', default: '20000' },
    only: { type: 'string', default: '' },
    processes: { type: 'string', default: '' },
    postgres: { type: 'string', default: '' },
  },
})
const rounds = Number(options.rounds)
const seconds = Number(options.seconds)
const connections = 64
/** Requests before a variant is measured at a process. Code that has run less is two to four times as slow. */
const warmUpRequests = Number(options['warm-up'])

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

/** For each variant: its process, its path, and the kind of body in load.ts. */
const variants = {
  'bare Express echo': ['theirs', '/echo', 'send'],
  'Express, EVALSHA, 429': ['theirs', '/one-by-one', 'same'],
  'by hand, one by one': ['theirs', '/one-by-one', 'send'],
  'by hand, per tick': ['theirs', '/per-tick', 'send'],
  'by hand, the same work': ['theirs', '/whole', 'send'],
  refused: ['ours', '/v1/captchas', 'same'],
  accepted: ['ours', '/v1/captchas', 'send'],
  'right code': ['ours', '/v1/captchas/check', 'right'],
  'no code': ['ours', '/v1/captchas/check', 'gone'],
} as const
type Variant = keyof typeof variants

interface Load {
  perSecond: number
  p99Ms: number
  statuses: Record<string, number>
}

interface Result extends Load {
  requests: number
  apiUs: number
  redisUs: number
  postgresUs: number
  /** Transactions that wrote, per request. */
  commits: number
}

const perSecond = (result: Result) => result.perSecond
const apiUs = (result: Result) => result.apiUs
const allUs = (result: Result) => result.apiUs + result.redisUs + result.postgresUs

const settings = options.postgres.split(',').filter(Boolean)
const bench = await openBench(settings.flatMap((setting) => ['-c', setting]))
const redis = new Redis(bench.redis.url)
bench.closeLater(() => redis.disconnect())
const database = new pg.Client({ connectionString: bench.postgres.url })
database.on('error', () => {})
await database.connect()
bench.closeLater(() => database.end())
const codes = createCodeStore(redis, createSecrets(secret), {
  keyPrefix: 'postern:',
  ttlMs: 600_000,
  triesPerCode: 3,
})
let salt = 1

try {
  if (options.processes) await compareProcesses(options.processes.split(',').map(Number))
  else await compareRoutes()
} finally {
  await bench.close()
}

async function compareRoutes(): Promise<void> {
  const theirs = () => bench.start('bench/targets/hand-written.ts')
  const ours = () => bench.start('src/main/api.ts', policyFile)
  const [theirs1, ours1] = [await theirs(), await ours()]
  const [ours2, theirs2] = [await ours(), await theirs()]
  const pairs = [
    { theirs: theirs1, ours: ours1 },
    { theirs: theirs2, ours: ours2 },
  ] as const

  const results = (names: readonly Variant[], isCarried: boolean) =>
    inRounds(names, pairs, async (name, pair) => {
      const [whose, path, body] = variants[name]
      const result = await load([pair[whose]], path, body)
      if (isCarried) await drain()
      return result
    })
  const wanted = (Object.keys(variants) as Variant[]).filter(
    (name) => variants[name][0] === 'theirs' || name.includes(options.only),
  )
  const alone = await results(wanted, false)
  printFigures('no worker running', alone)
  const addGoal = openTable('goals', 'ours', 'theirs', 'ratio', 'bound')
  const goal = (
    name: string,
    all: Map<Variant, Result[]>,
    ours: Variant,
    theirs: Variant,
    pick: (result: Result) => number,
    bound: string,
  ) => {
    const [one, other] = [ours, theirs].map((variant) => median((all.get(variant) ?? []).map(pick)))
    if (one === undefined || other === undefined || Number.isNaN(one)) return
    addGoal(name, one.toFixed(0), other.toFixed(0), (one / other).toFixed(2), bound)
  }
  goal('refused, API µs', alone, 'refused', 'Express, EVALSHA, 429', apiUs, '≤ 1.5')
  goal('accepted, API µs', alone, 'accepted', 'by hand, per tick', apiUs, '≤ 1.3')
  goal('accepted, API µs', alone, 'accepted', 'by hand, the same work', apiUs, 'about 1')
  goal('right code, API µs', alone, 'right code', 'bare Express echo', apiUs, '≤ 2')
  goal('no code, API µs', alone, 'no code', 'bare Express echo', apiUs, '≤ 1.3')
  goal('accepted, all µs', alone, 'accepted', 'by hand, one by one', allUs, '≤ 0.6')
  goal('accepted per second', alone, 'accepted', 'by hand, one by one', perSecond, '≥ 1.5')
  if (options.only) return
  await bench.start('src/main/worker.ts', policyFile)
  await bench.start('bench/targets/hand-written-worker.ts')
  const carried = await results(['by hand, one by one', 'accepted'], true)
  goal('the same, workers running', carried, 'accepted', 'by hand, one by one', perSecond, '≥ 2.2')
}

async function compareProcesses(counts: readonly number[]): Promise<void> {
  const processes: BenchProcess[] = []
  while (processes.length < Math.max(...counts)) {
    processes.push(await bench.start('src/main/api.ts', policyFile))
  }
  // Each order begins with another process, so that a count is not measured at the same processes in each round.
  const orders = processes.map((_, at) => [...processes.slice(at), ...processes.slice(0, at)])
  const results = await inRounds(counts, orders, (count, order) =>
    load(order.slice(0, count), '/v1/captchas', 'send'),
  )
  const [few = []] = results.values()
  const addRow = openTable(
    `accepted sends, medians of ${rounds} rounds of ${seconds} s`,
    'per second',
    'p99 ms',
    'API µs',
    '/ first row',
    'Redis µs',
    'PostgreSQL µs',
    'commits',
  )
  for (const [count, all] of results) {
    const of = (pick: (result: Result) => number) => median(all.map(pick))
    addRow(
      `${count} API process${count === 1 ? '' : 'es'}`,
      of(perSecond).toFixed(0),
      of(({ p99Ms }) => p99Ms).toFixed(1),
      of(apiUs).toFixed(0),
      (of(apiUs) / median(few.map(apiUs))).toFixed(2),
      of(({ redisUs }) => redisUs).toFixed(0),
      of(({ postgresUs }) => postgresUs).toFixed(0),
      of(({ commits }) => commits).toFixed(3),
    )
  }
}

/** Measures all variants in turns. Each round uses the next place. Of four rounds, two run in the opposite order. */
async function inRounds<Name, Place>(
  names: readonly Name[],
  places: readonly Place[],
  run: (name: Name, place: Place) => Promise<Result>,
): Promise<Map<Name, Result[]>> {
  const results = new Map<Name, Result[]>(names.map((name) => [name, []]))
  for (const place of places) {
    for (const name of names) {
      for (let sent = 0; sent < warmUpRequests; ) sent += (await run(name, place)).requests
      await forget()
    }
  }
  for (let round = 0; round < rounds; round++) {
    const place = places[round % places.length] as Place
    for (const name of round % 4 < 2 ? names : names.toReversed()) {
      results.get(name)?.push(await run(name, place))
    }
    await forget()
  }
  return results
}

/** Deletes all sent data, so that the next load begins with empty servers. */
async function forget(): Promise<void> {
  await redis.flushdb()
  await database.query('TRUNCATE notice')
}

async function load(
  processes: readonly BenchProcess[],
  path: string,
  body: string,
): Promise<Result> {
  salt++
  if (body === 'right') await rememberCodes()
  const urls = processes.map(({ url }) => url).join(',')
  const args = ['bench/load.ts', urls, seconds, connections, path, body, key, salt].map(String)
  const pids = [...processes.map(({ pid }) => pid), bench.redis.pid, bench.postgres.pid]
  const [before, commitsBefore] = [pids.map(cpuMs), await writes()]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const result = JSON.parse(stdout) as Load
  const requests = Object.values(result.statuses).reduce((sum, count) => sum + count, 0)
  const usOf = pids.map((pid, at) => ((cpuMs(pid) - (before[at] ?? 0)) * 1_000) / requests)
  const [postgresUs = 0, redisUs = 0] = usOf.toReversed()
  return {
    ...result,
    requests,
    apiUs: usOf.slice(0, -2).reduce((sum, us) => sum + us, 0),
    redisUs,
    postgresUs,
    commits: ((await writes()) - commitsBefore) / requests,
  }
}

/** The number of transactions that have written. */
async function writes(): Promise<number> {
  const { rows } = await database.query(
    'SELECT pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS count',
  )
  return rows[0].count
}

/** Codes "0000" for the recipients of the next load. */
async function rememberCodes(): Promise<void> {
  const count = 12_000 * seconds
  for (let first = 0; first < count; first += 1_000) {
    const some = Array.from({ length: Math.min(1_000, count - first) }, (_, at) => {
      const digits = String(salt * 1_000_003 + first + at).slice(-8)
      const to = `+861${38 + (salt % 2)}${digits.padStart(8, '0')}`
      const owner = { app: 'default', scene: 'signup', channel: 'sms', to } as const
      return codes.remember(owner, '01a1fdac-16f8-75c6-b2de-26f19df3a927', '0000')
    })
    await Promise.all(some)
  }
}

/** Waits until the workers have sent everything of the last load, so that they do not disturb the next one. */
async function drain(): Promise<void> {
  const queues = ['{postern:send-sms}:send-sms', 'bull:baseline']
  const lists = queues.flatMap((queue) => [`${queue}:wait`, `${queue}:active`])
  const lengths = () => Promise.all(lists.map((list) => redis.llen(list)))
  const untilMs = performance.now() + 60_000
  while ((await lengths()).some((length) => length > 0)) {
    if (performance.now() > untilMs) throw new Error('the workers do not come to an end')
    await sleep(50)
  }
}

function printFigures(label: string, results: ReadonlyMap<Variant, readonly Result[]>): void {
  const addRow = openTable(
    `${label}: medians of ${rounds} rounds of ${seconds} s, ${connections} connections`,
    'per second',
    'p99 ms',
    'API µs',
    'Redis µs',
    'PostgreSQL µs',
    'statuses',
  )
  for (const [name, all] of results) {
    const of = (pick: (result: Result) => number, digits = 0) =>
      median(all.map(pick)).toFixed(digits)
    addRow(
      name,
      of(perSecond),
      of(({ p99Ms }) => p99Ms, 1),
      of(apiUs),
      of(({ redisUs }) => redisUs),
      of(({ postgresUs }) => postgresUs),
      Object.keys(all.at(-1)?.statuses ?? {}).join(' '),
    )
  }
}
