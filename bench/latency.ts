/**
 * `npm run bench -- latency`: from the press to the phone. The time of a code from the first byte of its request to the
 * arrival of the whole message at the provider.
 *
 * Postern and a path by hand (Express, EVALSHA, INSERT, BullMQ, undici or nodemailer) get the same open loop of requests
 * (open-load.ts). Each has separate servers, so processor time is counted apart. They take turns at each rate. The
 * provider is in this process. All times are of one clock. Times of a busy machine are too long: compare ratios.
 *
 * `× by hand` compares p50 with p50. `µs` is processor time per code: of API, worker, Redis and PostgreSQL, with their
 * work between messages. At 1 a second that work is nearly all of it.
 *
 *   npx node bench/run.ts latency [--rates 1,10,100,300,500,1000] [--channels sms,email] [--seconds 8] [--rounds 3]
 *   … --before ../other-checkout   another build too
 *   … --backlog 100000             each rate alone, and then beside so many bulk notices; the provider answers in 20 ms
 *   … --cold 5                     only the first ten codes at 1 a second after a start, so often
 *   … --short                      a minute: SMS at 10, 100 and 300, one round
 */

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { openBacklog } from './harness/backlog.ts'
import { type Bench, type BenchProcess, key, openBench, repository } from './harness/bench.ts'
import { serveHttp, serveSmtp } from './harness/far-end.ts'
import { cpuMs, monotonicMs, percentile } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const { values: options } = parseArgs({
  options: {
    rates: { type: 'string' },
    channels: { type: 'string' },
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string' },
    before: { type: 'string' },
    backlog: { type: 'string', default: '0' },
    cold: { type: 'string', default: '0' },
    short: { type: 'boolean', default: false },
  },
})
const listOf = (text: string) => text.split(',')
const rates = listOf(options.rates ?? (options.short ? '10,100,300' : '1,10,100,300,500,1000')).map(
  Number,
)
const channels = listOf(options.channels ?? (options.short ? 'sms' : 'sms,email')) as (
  | 'sms'
  | 'email'
)[]
const rounds = Number(options.rounds ?? (options.short ? 1 : 3))
const bulk = Number(options.backlog)
const colds = Number(options.cold)
/** A slow rate gets time for a few messages. */
const secondsAt = (rate: number) => Math.max(Number(options.seconds), Math.min(20, 20 / rate))

const answerMs = bulk > 0 ? 20 : 0
const connections = 20

interface Path {
  readonly name: string
  readonly bench: Bench
  readonly url: string
  readonly sendPath: string
  readonly processes: readonly BenchProcess[]
  readonly backlog?: ReturnType<typeof openBacklog>
}

/** The samples of a path at a rate. */
interface Figures {
  tookMs: number[]
  count: number
  usOf: Record<'api' | 'worker' | 'redis' | 'postgres', number>
}

// Each process of a bench ends with this one.
process.setMaxListeners(50)

let salt = 0
const arrivedAtMs = new Map<string, number>()
const isBulk = (to: string) => to.startsWith('bulk') || to.startsWith('+86199')
const onArrival = (to: string) => {
  if (!isBulk(to)) arrivedAtMs.set(to, monotonicMs())
}

for (const channel of channels) await measure(channel)
process.exit(0)

async function measure(channel: 'sms' | 'email'): Promise<void> {
  const serve = channel === 'email' ? serveSmtp : serveHttp
  const farEnd = serve(onArrival, () => answerMs)
  await once(farEnd.listen(0, '127.0.0.1'), 'listening')
  const { port } = farEnd.address() as AddressInfo
  const farUrl = `${channel === 'email' ? 'smtp' : 'http'}://127.0.0.1:${port}`
  const openers = [
    () => openPostern('Postern', repository, channel, farUrl),
    ...(options.before
      ? [() => openPostern('before', resolve(options.before as string), channel, farUrl)]
      : []),
    () => openByHand(farUrl),
  ]
  if (colds > 0) await measureCold(openers.slice(0, -1), channel)
  else await measureRates(await Promise.all(openers.map((open) => open())), channel)
  farEnd.close()
}

async function openPostern(
  name: string,
  cwd: string,
  channel: 'sms' | 'email',
  farUrl: string,
): Promise<Path> {
  const bench = await openBench()
  const from = 'Acme <no-reply@acme.test>'
  const provider =
    channel === 'email'
      ? { kind: 'smtp', url: farUrl, from, connections }
      : { kind: 'webhook', url: farUrl, secret: 'a secret of the far end' }
  const policyFile = {
    policies: {
      captcha: [{ name: 'recipient', key: '{channel}:{to}', sliding: '1 per 60s' }],
      notice: [],
      check: [],
    },
    providers: { one: provider },
    routes: { email: [], sms: [], [channel]: [{ use: ['one'] }] },
    delivery: { concurrency: connections },
  }
  let count = 0
  const backlog = openBacklog(
    bench,
    { channel, kind: 'notice', template: 'welcome', params: { name: 'Ada' } },
    () => {
      const number = String(count++).padStart(8, '0')
      return channel === 'email' ? `bulk${number}@example.test` : `+86199${number}`
    },
  )
  const api = await bench.start('src/main/api.ts', policyFile, { cwd })
  const worker = await bench.start('src/main/worker.ts', policyFile, { cwd })
  return {
    ...{ name, bench, backlog },
    url: api.url,
    sendPath: '/v1/captchas',
    processes: [api, worker],
  }
}

async function openByHand(farUrl: string): Promise<Path> {
  const bench = await openBench()
  const api = await bench.start('bench/targets/hand-written.ts')
  const env = { FAR_END: farUrl, CONNECTIONS: String(connections) }
  const worker = await bench.start('bench/targets/hand-written-worker.ts', {}, { env })
  return { name: 'by hand', bench, url: api.url, sendPath: '/one-by-one', processes: [api, worker] }
}

async function measureRates(paths: readonly Path[], channel: 'sms' | 'email'): Promise<void> {
  // Code that has run less costs several times as much. An overload would leave messages for the first rate.
  for (const path of paths) await press(path, channel, Math.min(200, ...rates.slice(-1)), 10)
  const addRow = openTable(
    `${channel}, ${rounds} rounds`,
    ...['a second', 'p50 ms', 'p99 ms', '× by hand', 'µs API', 'worker', 'Redis', 'PostgreSQL'],
  )
  async function compare(some: readonly Path[], title: (path: Path) => string): Promise<void> {
    for (const rate of rates) {
      const all = new Map(some.map((path) => [path, [] as Figures[]]))
      for (let round = 0; round < rounds; round++) {
        const inTurn = round % 2 === 0 ? some : some.toReversed()
        for (const path of inTurn)
          all.get(path)?.push(await press(path, channel, rate, secondsAt(rate)))
      }
      const handMs = percentile(sorted(all.get(some.at(-1) as Path)), 0.5)
      for (const [path, figures] of all) {
        const count = figures.reduce((sum, one) => sum + one.count, 0)
        const us = (['api', 'worker', 'redis', 'postgres'] as const).map((name) =>
          Math.round(figures.reduce((sum, { usOf }) => sum + usOf[name], 0) / count),
        )
        const tookMs = sorted(figures)
        const p50Ms = percentile(tookMs, 0.5)
        addRow(
          title(path),
          rate,
          p50Ms.toFixed(1),
          percentile(tookMs, 0.99).toFixed(1),
          path.backlog && some.length > 1 ? (p50Ms / handMs).toFixed(2) : '–',
          ...us,
        )
      }
    }
  }
  await compare(paths, ({ name }) => name)
  if (bulk > 0) {
    for (const path of paths) {
      if (!path.backlog) continue
      await path.backlog.fill(bulk)
      await path.backlog.open()
      await compare([path], ({ name }) => `${name}, beside bulk`)
      const left = await path.backlog.left()
      if (left === 0) console.log('the bulk notices ended before the codes')
    }
  }
  for (const path of paths) await path.bench.close()
}

function sorted(figures: readonly Figures[] = []): number[] {
  return figures.flatMap(({ tookMs }) => tookMs).toSorted((a, b) => a - b)
}

/** The codes of some seconds. Waits until all have arrived. */
async function press(
  path: Path,
  channel: 'sms' | 'email',
  rate: number,
  seconds: number,
): Promise<Figures> {
  const { bench, processes, url, sendPath } = path
  arrivedAtMs.clear()
  const pids = {
    api: processes[0]?.pid,
    worker: processes[1]?.pid,
    redis: bench.redis.pid,
    postgres: bench.postgres.pid,
  } as Record<keyof Figures['usOf'], number>
  const cpuUs = () => Object.values(pids).map((pid) => cpuMs(pid) * 1_000)
  const before = cpuUs()
  const args = ['bench/open-load.ts', url, sendPath, seconds, rate, key, salt++, channel]
  const { stdout } = await promisify(execFile)(process.execPath, args.map(String), {
    maxBuffer: 64e6,
  })
  const load = JSON.parse(stdout) as {
    sent: number
    accepted: { count: number }
    pressedAtMs: [string, number][]
  }
  if (load.accepted.count < load.sent)
    console.log(`${path.name}: ${load.accepted.count} of ${load.sent} were accepted`)
  for (let turn = 0; arrivedAtMs.size < load.accepted.count && turn < 1_500; turn++) await sleep(20)
  const after = cpuUs()
  const usOf = Object.fromEntries(
    Object.keys(pids).map((name, at) => [name, (after[at] ?? 0) - (before[at] ?? 0)]),
  ) as Figures['usOf']
  const tookMs = load.pressedAtMs.flatMap(([to, ms]) => {
    const arrivedMs = arrivedAtMs.get(to)
    return arrivedMs === undefined ? [] : [arrivedMs - ms]
  })
  return { tookMs, count: tookMs.length, usOf }
}

/** The first ten codes after a start: the middle of the starts, for each of the ten. */
async function measureCold(openers: readonly (() => Promise<Path>)[], channel: 'sms' | 'email') {
  const addRow = openTable(
    `${channel}, ms of the first codes at 1 a second, medians of ${colds} starts`,
    ...Array.from({ length: 10 }, (_, at) => `    ${at + 1}`),
  )
  const rows = new Map<string, number[][]>()
  for (let turn = 0; turn < colds; turn++) {
    for (const open of openers) {
      const path = await open()
      const { tookMs } = await press(path, channel, 1, 10)
      rows.set(path.name, [...(rows.get(path.name) ?? []), tookMs])
      await path.bench.close()
    }
  }
  for (const [name, starts] of rows) {
    const ofNth = Array.from({ length: 10 }, (_, at) =>
      starts.map((tookMs) => tookMs[at] ?? Number.NaN).toSorted((a, b) => a - b),
    )
    addRow(name, ...ofNth.map((ms) => percentile(ms, 0.5).toFixed(1)))
  }
}
