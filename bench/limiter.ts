/**
 * The speed and size of the limiter, compared with its alternatives and with an earlier version. All contenders run
 * in one process in turns, and medians of the rounds are compared. The rules are 1 per 60 s, 5 per 1 h and 10 per 24
 * h, unless a contender can't do that. Prints the goals at the end. The exit code is 1 if one is missed.
 */
import { setImmediate } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { RateLimiterMemory, RateLimiterUnion } from 'rate-limiter-flexible'
import { createLimiter, type Limiter } from '../src/limiter/index.ts'
import { openRedisBench } from './harness/bench.ts'
import {
  batchedFloor,
  type Check,
  type Contender,
  expressStore,
  flexibleRule,
  flexibleUnion,
  floor,
  loadLimiterBefore,
  sortedSet,
} from './harness/contenders.ts'
import { median, percentile } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const rounds = Number(process.env.ROUNDS ?? 5)
const opsPerRound = Number(process.env.OPS ?? 20_000)
const policies = {
  captcha: [{ name: 'recipient', key: '{to}', sliding: ['1 per 60s', '5 per 1h', '10 per 24h'] }],
}

const bench = await openRedisBench(['--appendonly', 'no'])

const createLimiterBefore = await loadLimiterBefore(bench.folder)

async function run(): Promise<void> {
  const admin = connect()
  const contenders = makeContenders()
  const rates = new Map<string, number[]>()
  const note = (name: string, value: number) => {
    rates.set(name, [...(rates.get(name) ?? []), value])
  }
  for (let round = -1; round < rounds; round++) {
    // Each contender runs at every position, because garbage of one is collected while the next is measured.
    for (const { name, check } of [...contenders.slice(round), ...contenders.slice(0, round)]) {
      for (const inFlight of [64, 256]) {
        await admin.flushdb()
        const admitted = await measure(admin, check, inFlight, (op) => `+86138${round}x${op}`)
        for (let use = 0; use < 10; use++) {
          await Promise.all(Array.from({ length: 100 }, (_, subject) => check(`+86139${subject}`)))
        }
        const refused = await measure(admin, check, inFlight, (op) => `+86139${op % 100}`)
        if (round < 0) continue // warming up
        note(`${name} admitted ${inFlight}`, admitted.perSecond)
        note(`${name} refused ${inFlight}`, refused.perSecond)
        note(`${name} admitted µs`, admitted.serverUs)
        note(`${name} refused µs`, refused.serverUs)
        note(`${name} p50 ${inFlight}`, admitted.p50)
        note(`${name} p99 ${inFlight}`, admitted.p99)
      }
    }
  }
  const of = (name: string) => median(rates.get(name) ?? [0])
  const base = 'sorted set (S1)'
  const addRow = openTable(
    `${opsPerRound} checks per round, medians of ${rounds} rounds`,
    'admitted/s 256',
    '× sorted set',
    'refused/s 256',
    '× sorted set',
    'admitted/s 64',
    'p50/p99 ms 64',
    'p50/p99 ms 256',
    'server µs admitted',
    '× sorted set',
    'refused',
  )
  for (const { name } of contenders) {
    const ratio = (what: string) => (of(`${name} ${what}`) / of(`${base} ${what}`)).toFixed(2)
    addRow(
      name,
      thousands(of(`${name} admitted 256`)),
      ratio('admitted 256'),
      thousands(of(`${name} refused 256`)),
      ratio('refused 256'),
      thousands(of(`${name} admitted 64`)),
      `${of(`${name} p50 64`).toFixed(2)} / ${of(`${name} p99 64`).toFixed(2)}`,
      `${of(`${name} p50 256`).toFixed(2)} / ${of(`${name} p99 256`).toFixed(2)}`,
      of(`${name} admitted µs`).toFixed(1),
      ratio('admitted µs'),
      of(`${name} refused µs`).toFixed(1),
    )
  }
  const ours = 'postern'
  const before = 'the version before'
  const union = 'rate-limiter-flexible, union of 3'
  const batched = 'floor: GET + SET PX, batched'
  const bytesPerSubject = await bytes(admin, contenders)
  const local = await inProcess()
  /** Round by round, because the speed of the machine changes. */
  const share = (one: string, what: string, other: string) => {
    const others = rates.get(`${other} ${what}`) ?? []
    return median(
      (rates.get(`${one} ${what}`) ?? []).map((rate, round) => rate / (others[round] ?? 0)),
    )
  }
  const shares = (what: string, other: string) =>
    [ours, before, batched].map((one) => share(one, what, other))
  printGoals([
    ['admitted/s at 256 in flight, × the union', 'at least', 6, shares('admitted 256', union)],
    ['refused/s at 256 in flight, × the union', 'at least', 9, shares('refused 256', union)],
    [
      'server µs per admitted, × the batched floor',
      'at most',
      1.35,
      shares('admitted µs', batched),
    ],
    ['bytes per subject in Redis, ten uses', 'at most', 260, bytesPerSubject],
    ['in process, × the in-memory union', 'at least', 4, local.ratios],
    ['in process, bytes per subject, ten uses', 'at most', 400, local.bytes],
  ])
}

function connect(): Redis {
  const redis = new Redis(bench.redis.url, { maxRetriesPerRequest: 1 })
  redis.on('error', () => {})
  bench.closeLater(() => redis.disconnect())
  return redis
}

function makeContenders(): Contender[] {
  const shared = { policies, rememberRefusalsMs: 0, deadlineMs: 5_000 }
  const limiterOf = (create: typeof createLimiter, keyPrefix: string, more: object = {}) => {
    const limiter = create({ ...shared, redis: connect(), keyPrefix, ...more })
    bench.closeLater(() => limiter.close())
    return limiter
  }
  const asking = (name: string, limiter: Limiter, hasIds = false): Contender => {
    let id = 0
    const options = () => (hasIds ? { requestId: `${id++}` } : {})
    return {
      name,
      check: async (to) => (await limiter.acquire('captcha', { to }, options())).admitted,
    }
  }
  /** Each subject repeats its checks, so its value is as long as for a busy subject. */
  const open = { captcha: [{ name: 'r', key: '{to}', sliding: ['90 per 1h', '100 per 24h'] }] }
  const busy = limiterOf(createLimiter, 'busy:', { policies: open })
  return [
    asking('postern', limiterOf(createLimiter, 'postern:')),
    asking('postern, with request ids', limiterOf(createLimiter, 'ids:'), true),
    {
      name: 'postern, subjects of 80 uses',
      check: async (to) => {
        const fields = { to: `${Number(to.slice(-2)) || 0}` }
        return (await busy.acquire('captcha', fields, { permits: 1 })).admitted
      },
    },
    ...(createLimiterBefore
      ? [
          asking('the version before', limiterOf(createLimiterBefore, 'before:')),
          asking(
            'the version before, with request ids',
            limiterOf(createLimiterBefore, 'bids:'),
            true,
          ),
        ]
      : []),
    ...[sortedSet, floor, batchedFloor, flexibleRule, flexibleUnion, expressStore].map((open) =>
      open(connect()),
    ),
  ]
}

async function measure(
  admin: Redis,
  check: Check,
  inFlight: number,
  subjectOf: (op: number) => string,
) {
  const cpuBefore = await cpuUs(admin)
  const latencies: number[] = []
  let next = 0
  const startedAt = performance.now()
  const worker = async () => {
    while (next < opsPerRound) {
      const askedAt = performance.now()
      await check(subjectOf(next++))
      latencies.push(performance.now() - askedAt)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  const seconds = (performance.now() - startedAt) / 1_000
  const serverUs = (await cpuUs(admin)) - cpuBefore
  latencies.sort((a, b) => a - b)
  return {
    perSecond: opsPerRound / seconds,
    serverUs: serverUs / opsPerRound,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  }
}

/** Processor time of Redis' main thread: the cost of a check for Redis, on any machine. */
async function cpuUs(admin: Redis): Promise<number> {
  const info = await admin.info('cpu')
  const seconds = (name: string) =>
    Number(new RegExp(`used_cpu_${name}_main_thread:(\\S+)`).exec(info)?.[1])
  return (seconds('user') + seconds('sys')) * 1_000_000
}

/** Memory per subject, including keys and times to live. In Postern's limiter each subject has ten uses. */
async function bytes(admin: Redis, contenders: Contender[]): Promise<number[]> {
  const addRow = openTable('bytes per subject', 'bytes')
  const subjects = 20_000
  const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1])
  const perSubject = async (name: string, check: Check, uses: number) => {
    await admin.flushdb()
    const start = await usedMemory()
    for (let first = 0; first < subjects * uses; first += 500) {
      const subjectOf = (op: number) => `+8613${(first + op) % subjects}`
      await Promise.all(Array.from({ length: 500 }, (_, op) => check(subjectOf(op))))
    }
    const each = Math.round(((await usedMemory()) - start) / subjects)
    addRow(name, each)
    return each
  }
  const open = { p: [{ name: 'r', key: '{to}', sliding: ['10 per 1h', '20 per 24h'] }] }
  const tenUses = (name: string, create: typeof createLimiter) => {
    const shared = { policies: open, redis: connect(), deadlineMs: 5_000 }
    const limiter = create({ ...shared, rememberRefusalsMs: 0 })
    bench.closeLater(() => limiter.close())
    const check: Check = async (to) => (await limiter.acquire('p', { to })).admitted
    return perSubject(`${name}, ten uses`, check, 10)
  }
  const found = [await tenUses('postern', createLimiter)]
  if (createLimiterBefore) found.push(await tenUses('the version before', createLimiterBefore))
  for (const { name, check } of contenders) {
    if (name.startsWith('floor') || name.includes('80 uses')) continue
    await perSubject(`${name}, one use`, check, 1)
  }
  return found
}

/** Processor time per call, because other programs take a share of any rate. */
async function inProcess(): Promise<{ ratios: number[]; bytes: number[] }> {
  const ops = 1_000_000
  const rate = async (act: (op: number) => unknown) => {
    for (let op = 0; op < 50_000; op++) await act(op)
    const before = process.cpuUsage()
    for (let op = 0; op < ops; op++) {
      const result = act(op)
      if (result instanceof Promise) await result
    }
    const { user, system } = process.cpuUsage(before)
    return (ops / (user + system)) * 1_000_000
  }
  const subjects = Array.from({ length: 100_000 }, (_, subject) => `+86138${subject}`)
  const subjectOf = (op: number) => subjects[op % subjects.length] as string
  let now = 0
  const clock = () => now++
  const open = {
    p: [{ name: 'r', key: '{to}', sliding: ['10 per 60s', '50 per 1h', '100 per 24h'] }],
  }
  const ten = { p: [{ name: 'r', key: '{to}', sliding: '10 per 24h' }] }
  const perSecond = async (name: string, act: (op: number) => unknown) => {
    const value = await rate(act)
    addRow(name, thousands(value))
    return value
  }
  const bytesOf = async (create: typeof createLimiter) => {
    const before = await heapBytes()
    const limiter = create({ policies: ten, maxSubjects: 100_000, clock })
    for (let op = 0; op < 1_000_000; op++) limiter.tryAcquire('p', { to: subjectOf(op) })
    const each = Math.round(((await heapBytes()) - before) / subjects.length)
    limiter.tryAcquire('p', { to: 'x' })
    return each
  }
  const addRow = openTable('in process', 'per second of processor time')
  const tryAll = (create: typeof createLimiter) => {
    const limiter = create({ policies: open, maxSubjects: 100_000, clock })
    return (op: number) => limiter.tryAcquire('p', { to: subjectOf(op) })
  }
  const found = [await perSecond('100,000 subjects, three windows', tryAll(createLimiter))]
  if (createLimiterBefore) {
    found.push(await perSecond('the same, the version before', tryAll(createLimiterBefore)))
  }
  const memory = new RateLimiterMemory({ points: 1_000, duration: 60 })
  await perSecond('rate-limiter-flexible in memory, one rule', (op) =>
    memory.consume(subjectOf(op)),
  )
  const union = new RateLimiterUnion(
    ...[60, 3_600, 86_400].map(
      (duration) => new RateLimiterMemory({ keyPrefix: `${duration}`, points: 1_000, duration }),
    ),
  )
  const theirs = await perSecond('rate-limiter-flexible in memory, union of 3', (op) =>
    union.consume(subjectOf(op)),
  )
  const remembering = createLimiter({ policies, redis: connect(), rememberRefusalsMs: 59_000 })
  bench.closeLater(() => remembering.close())
  for (let use = 0; use < 2; use++) await remembering.acquire('captcha', { to: 'x' })
  await perSecond('remembered refusal', () => remembering.acquire('captcha', { to: 'x' }))
  const bytes = [await bytesOf(createLimiter)]
  if (createLimiterBefore) bytes.push(await bytesOf(createLimiterBefore))
  for (const [place, each] of bytes.entries()) {
    addRow(`bytes per subject, ten uses${place === 0 ? '' : ', the version before'}`, each)
  }
  return { ratios: found.map((perSecond) => perSecond / theirs), bytes }
}

/** Values of the limiter, of the earlier version, and of the batched lower bound. */
type Goal = [what: string, side: 'at least' | 'at most', bound: number, values: number[]]

function printGoals(goals: Goal[]): void {
  const addRow = openTable('goal', 'bound', 'here', '', 'the version before', 'batched floor')
  for (const [what, side, bound, [here = Number.NaN, ...others]] of goals) {
    const isMet = side === 'at least' ? here >= bound : here <= bound
    if (!isMet) process.exitCode = 1
    const [before = '', floor = ''] = others.map(shown)
    addRow(what, `${side} ${bound}`, shown(here), isMet ? 'met' : 'MISSED', before, floor)
  }
}

function shown(value: number): string {
  return Number.isNaN(value) ? '' : value.toFixed(value < 100 ? 2 : 0)
}

/** Run with --expose-gc to have garbage out of it; what the call before this one held is garbage a moment later. */
async function heapBytes(): Promise<number> {
  await setImmediate()
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function thousands(value: number): string {
  return `${(value / 1_000).toFixed(value < 10_000 ? 1 : 0)} k`
}

try {
  await run()
} finally {
  await bench.close()
}
