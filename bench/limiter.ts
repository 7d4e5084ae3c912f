/**
 * How fast and how small is the limiter, beside what else one would use? All in one run, interleaved,
 * medians over rounds; the rules are 1 per 60 s, 5 per 1 h and 10 per 24 h unless a contender can't.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { type RedisReply, RedisStore } from 'rate-limit-redis'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible'
import { createScriptPlans } from '../src/limiter/acquire-script.ts'
import { createLimiter, parsePolicies } from '../src/limiter/index.ts'
import { compilePolicies } from '../src/limiter/plan.ts'
import { startPrivateRedis } from '../src/main/private-servers.ts'

const rounds = Number(process.env.ROUNDS ?? 5)
const opsPerRound = Number(process.env.OPS ?? 20_000)
const policies = {
  captcha: [{ name: 'recipient', key: '{to}', sliding: ['1 per 60s', '5 per 1h', '10 per 24h'] }],
}

const parsed = parsePolicies(policies)
if (!parsed.ok) throw new Error('the policies of this bench do not hold')
/** The script that the limiter runs for them. */
const plan = createScriptPlans()(compilePolicies(parsed.policies, '').get('captcha')?.parts ?? [])

const dataDir = mkdtempSync(join(tmpdir(), 'postern-bench-'))
const server = await startPrivateRedis({ dataDir, flags: ['--appendonly', 'no'] })
const closers: { close(): void }[] = []

/** One check of one subject; true if admitted. */
type Check = (subject: string) => Promise<boolean>

interface Contender {
  readonly name: string
  readonly check: Check
}

async function run(): Promise<void> {
  const admin = new Redis(server.url)
  const contenders = makeContenders()
  const rates = new Map<string, number[]>()
  const note = (name: string, value: number) => {
    rates.set(name, [...(rates.get(name) ?? []), value])
  }
  for (let round = -1; round < rounds; round++) {
    for (const { name, check } of contenders) {
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
    if (round >= 0) note('ceiling', ceiling(admin.options.password as string))
  }
  const of = (name: string) => median(rates.get(name) ?? [0])
  const base = 'sorted set (S1)'
  console.log(
    `\n${opsPerRound} checks per round, medians of ${rounds} rounds; ratios to the sorted set\n`,
  )
  console.log(
    '| | admitted/s 256 | × | refused/s 256 | × | admitted/s 64 | p50/p99 ms 64 | p50/p99 ms 256 | server µs admitted | × | refused |',
  )
  console.log('|---|---|---|---|---|---|---|---|---|---|---|')
  for (const { name } of contenders) {
    const ratio = (what: string) => (of(`${name} ${what}`) / of(`${base} ${what}`)).toFixed(2)
    const cells = [
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
    ]
    console.log(`| ${cells.join(' | ')} |`)
  }
  console.log(
    `\nredis-benchmark, our script, batches of 128: ${thousands(of('ceiling'))} admitted/s`,
  )
  await bytes(admin, contenders)
  await inProcess()
  for (const one of closers) one.close()
  admin.disconnect()
}

function connect(): Redis {
  const redis = new Redis(server.url, { maxRetriesPerRequest: 1 })
  redis.on('error', () => {})
  closers.push({ close: () => redis.disconnect() })
  return redis
}

function makeContenders(): Contender[] {
  const ours = createLimiter({
    policies,
    redis: connect(),
    rememberRefusalsMs: 0,
    subjectKey: 'bench',
    deadlineMs: 5_000,
  })
  closers.push(ours)
  const withIds = createLimiter({
    policies,
    redis: connect(),
    rememberRefusalsMs: 0,
    keyPrefix: 'ids:',
    deadlineMs: 5_000,
  })
  closers.push(withIds)
  let id = 0
  return [
    {
      name: 'postern',
      check: async (to) => (await ours.acquire('captcha', { to })).admitted,
    },
    {
      name: 'postern, with request ids',
      check: async (to) =>
        (await withIds.acquire('captcha', { to }, { requestId: `${id++}` })).admitted,
    },
    scriptContender('sorted set (S1)', sortedSetScript),
    scriptContender('floor: GET + SET PX', floorScript),
    batchedFloor(),
    flexible('rate-limiter-flexible, one rule', [[10, 86_400]]),
    flexible('rate-limiter-flexible, union of 3', [
      [1, 60],
      [5, 3_600],
      [10, 86_400],
    ]),
    expressStore(),
  ]
}

/** S1 written as it should be: Redis time, unique members, a time to live, the wait of the refusing window. */
const sortedSetScript = `
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 86400000)
local windows = { { 86400000, 10 }, { 3600000, 5 }, { 60000, 1 } }
for _, window in ipairs(windows) do
  if redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now - window[1]), '+inf') >= window[2] then
    local holder = redis.call('ZREVRANGE', KEYS[1], window[2] - 1, window[2] - 1, 'WITHSCORES')
    return window[1] - (now - holder[2])
  end
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], 86400000)
return 0`

const floorScript = `
redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', 86400000)
return 0`

/** The least that any batch of exact checks must do, decided by nobody. */
function batchedFloor(): Contender {
  const redis = connect()
  const source = `for i = 1, #KEYS do
    redis.call('GET', KEYS[i])
    redis.call('SET', KEYS[i], ARGV[1], 'PX', 86400000)
  end
  return 0`
  const sha = createHash('sha1').update(source).digest('hex')
  let waiting: { key: string; done: (admitted: boolean) => void }[] = []
  let isLoaded: Promise<unknown> | undefined
  async function flush(): Promise<void> {
    const batch = waiting
    waiting = []
    isLoaded ??= redis.script('LOAD', source)
    await isLoaded
    await redis.evalsha(sha, batch.length, ...batch.map(({ key }) => key), 'x'.repeat(11))
    for (const { done } of batch) done(true)
  }
  return {
    name: 'floor: GET + SET PX, batched',
    check: (subject) =>
      new Promise((done) => {
        if (waiting.push({ key: `b:${subject}`, done }) === 1) setImmediate(flush)
        if (waiting.length === 128) void flush()
      }),
  }
}

function scriptContender(name: string, source: string): Contender {
  const redis = connect()
  const sha = createHash('sha1').update(source).digest('hex')
  let isLoaded: Promise<unknown> | undefined
  let member = 0
  return {
    name,
    async check(subject) {
      isLoaded ??= redis.script('LOAD', source)
      await isLoaded
      return (await redis.evalsha(sha, 1, `s:${subject}`, `${member++}`)) === 0
    },
  }
}

function flexible(name: string, rules: [number, number][]): Contender {
  const redis = connect()
  const limiters = rules.map(
    ([points, duration]) =>
      new RateLimiterRedis({ storeClient: redis, points, duration, keyPrefix: `f${duration}` }),
  )
  const limiter = limiters.length === 1 ? limiters[0] : new RateLimiterUnion(...limiters)
  return {
    name,
    check: (subject) =>
      (limiter as RateLimiterRedis).consume(subject).then(
        () => true,
        () => false,
      ),
  }
}

function expressStore(): Contender {
  const redis = connect()
  const store = new RedisStore({
    sendCommand: (command: string, ...args: string[]) =>
      redis.call(command, ...args) as Promise<RedisReply>,
  })
  store.init({ windowMs: 60_000 } as Parameters<RedisStore['init']>[0])
  return {
    name: 'express-rate-limit, rate-limit-redis, one rule',
    check: async (subject) => (await store.increment(subject)).totalHits <= 1,
  }
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
  const at = (share: number) => latencies[Math.floor(latencies.length * share)] as number
  return {
    perSecond: opsPerRound / seconds,
    serverUs: serverUs / opsPerRound,
    p50: at(0.5),
    p99: at(0.99),
  }
}

/** Processor time of Redis' main thread: what a check really costs it, whatever else this machine does. */
async function cpuUs(admin: Redis): Promise<number> {
  const info = await admin.info('cpu')
  const seconds = (name: string) =>
    Number(new RegExp(`used_cpu_${name}_main_thread:(\\S+)`).exec(info)?.[1])
  return (seconds('user') + seconds('sys')) * 1_000_000
}

/** What Redis can do with our script when the client costs nothing: admitted checks per second. */
function ceiling(password: string): number {
  const keys = Array.from({ length: 128 }, () => 'postern:{ab}0123__rand_int__')
  const calls = Math.ceil(opsPerRound / 128)
  const output = execFileSync('redis-benchmark', [
    ...['-p', String(server.port), '-a', password, '-n', String(calls), '-c', '4'],
    ...['-r', '1000000000000', '--csv', 'evalsha', plan.script.sha, '128', ...keys, '1', '0'],
  ]).toString()
  const line = output.trim().split('\n').at(-1) as string
  return Number(line.split('","').at(1)?.replaceAll('"', '')) * 128
}

/** Memory per subject with ten uses, keys and times to live included. */
async function bytes(admin: Redis, contenders: Contender[]): Promise<void> {
  console.log('\n| bytes per subject | |\n|---|---|')
  const subjects = 20_000
  const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await admin.info('memory'))?.[1])
  await admin.flushdb()
  const before = await usedMemory()
  const now = Date.now()
  let pipeline = admin.pipeline()
  for (let subject = 0; subject < subjects; subject++) {
    const value = Buffer.alloc(41)
    for (let use = 0; use < 10; use++) {
      value.writeUInt32BE((now - (10 - use) * 7_200_000) % 2 ** 32, 1 + use * 4)
    }
    const hash = createHash('sha256').update(`${subject}`).digest('base64url')
    pipeline.set(`postern:{${hash.slice(0, 2)}}${hash.slice(2, 18)}`, value, 'PX', 86_400_000)
    if (subject % 1_000 === 999) {
      await pipeline.exec()
      pipeline = admin.pipeline()
    }
  }
  console.log(
    `| postern, ten uses in 24 h | ${Math.round(((await usedMemory()) - before) / subjects)} |`,
  )
  for (const { name, check } of contenders) {
    if (name.startsWith('floor')) continue
    await admin.flushdb()
    const start = await usedMemory()
    for (let first = 0; first < subjects; first += 500) {
      await Promise.all(Array.from({ length: 500 }, (_, op) => check(`+8613${first + op}`)))
    }
    console.log(`| ${name}, one use | ${Math.round(((await usedMemory()) - start) / subjects)} |`)
  }
}

/** Processor time per call, because other programs on the machine take their share of any rate. */
async function inProcess(): Promise<void> {
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
  const open = {
    p: [{ name: 'r', key: '{to}', sliding: ['10 per 60s', '50 per 1h', '100 per 24h'] }],
  }
  const local = createLimiter({ policies: open, maxSubjects: 100_000, clock: () => now++ })
  const flexibleMemory = new RateLimiterMemory({ points: 1_000, duration: 60 })
  const flexibleUnion = new RateLimiterUnion(
    ...[60, 3_600, 86_400].map(
      (duration) => new RateLimiterMemory({ keyPrefix: `${duration}`, points: 1_000, duration }),
    ),
  )
  const remembering = createLimiter({ policies, redis: connect(), rememberRefusalsMs: 59_000 })
  closers.push(remembering)
  await remembering.acquire('captcha', { to: 'x' })
  await remembering.acquire('captcha', { to: 'x' })
  const fields = { to: 'x' }
  const bytesBefore = heapBytes()
  const ten = createLimiter({
    policies: { p: [{ name: 'r', key: '{to}', sliding: '10 per 24h' }] },
    maxSubjects: 100_000,
    clock: () => now++,
  })
  for (let op = 0; op < 1_000_000; op++) ten.tryAcquire('p', { to: subjectOf(op) })
  console.log(
    `\nin process, ten uses: ${Math.round((heapBytes() - bytesBefore) / subjects.length)} bytes per subject`,
  )
  ten.tryAcquire('p', fields)
  console.log('\n| in process | per second of processor time |\n|---|---|')
  const print = (name: string, perSecond: number) =>
    console.log(`| ${name} | ${thousands(perSecond)} |`)
  print(
    'tryAcquire, 100,000 subjects, three windows',
    await rate((op) => local.tryAcquire('p', { to: subjectOf(op) })),
  )
  print('tryAcquire, one subject', await rate(() => local.tryAcquire('p', fields)))
  const places = new Map(subjects.map((subject, place) => [`${subject}`, place]))
  print(
    'a Map of 100,000 subjects, looked up and nothing else',
    await rate((op) => places.get(subjectOf(op))),
  )
  print(
    'rate-limiter-flexible in memory, one rule',
    await rate((op) => flexibleMemory.consume(subjectOf(op))),
  )
  print(
    'rate-limiter-flexible in memory, union of 3',
    await rate((op) => flexibleUnion.consume(subjectOf(op))),
  )
  print('remembered refusal, acquire', await rate(() => remembering.acquire('captcha', fields)))
  print('remembered refusal, recall', await rate(() => remembering.recall('captcha', fields)))
}

/** Run with --expose-gc to have garbage out of it. */
function heapBytes(): number {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? 0
}

function thousands(value: number): string {
  return `${(value / 1_000).toFixed(value < 10_000 ? 1 : 0)} k`
}

try {
  await run()
} finally {
  await server.kill()
  rmSync(dataDir, { recursive: true, force: true })
}
