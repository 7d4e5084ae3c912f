/**
 * `npm run bench -- keyless`: the harm that strangers can do to callers with a key (I21).
 *
 * Valid sends at a steady rate: alone, beside each kind of request without a valid key, and beside the same requests
 * to another server on this machine. The program that sends the requests needs processor time too. The last
 * measurement shows how much of the delay comes from that.
 *
 * For each kind, the three measurements are repeated in rounds, and a percentile is of all rounds. So a slow minute
 * of the machine affects all three. Latencies begin when a request is due, so a request that waits to be sent counts
 * as slow. The table also has the API's processor time for the strangers' requests alone, per request and per kB.
 * With 2 seconds and 5 rounds a kind takes 33 seconds.
 *
 *   npx node bench/run.ts keyless [seconds] [strangers per second] [--rounds 5] [--only 'forged|1 MB'] [--part 1/3]
 */
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import pg from 'pg'
import {
  type FloodResult,
  flood,
  floodedFacades,
  keylessKinds,
  receiptProviders,
  validSend,
} from './flood.ts'
import { type Bench, key, openBench } from './harness/bench.ts'
import { cpuMs, percentile } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    part: { type: 'string', default: '1/1' },
  },
})
const [seconds = 2, strangersPerSecond = 1_000] = positionals.map(Number)
const rounds = Number(options.rounds)
const validPerSecond = 100
/** 200 Mbit/s: large bodies come less often than `strangers per second`. */
const maxBytesPerSecond = 25_000_000

const policyFile = {
  // The numbers of the sends do not repeat. A rule by address would refuse the bench itself.
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
    check: [],
  },
  providers: { sandbox: { kind: 'sandbox' }, ...receiptProviders },
  compat: floodedFacades,
  routes: { sms: [{ use: ['sandbox'] }], email: [{ use: ['sandbox'] }] },
}

const bench = await openBench()
try {
  await compare(bench)
} finally {
  await bench.close()
}

/** The kinds to measure: one part of the kinds whose names match the pattern. */
function wantedKinds(): string[] {
  const [part = 1, parts = 1] = options.part.split('/').map(Number)
  const only = new RegExp(options.only)
  const names = Object.keys(keylessKinds).filter((name) => only.test(name))
  const start = (count: number) => Math.round((names.length * count) / parts)
  return names.slice(start(part - 1), start(part))
}

async function compare({ postgres, start, closeLater }: Bench): Promise<void> {
  const { url, pid } = await start('src/main/api.ts', policyFile)
  const other = await start('bench/targets/hand-written.ts')
  const database = new pg.Client({ connectionString: postgres.url })
  database.on('error', () => {})
  await database.connect()
  closeLater(() => database.end())
  const next = () => validSend(key)
  const sends = () => flood(url, { perSecond: validPerSecond, seconds, connections: 32, next })
  const sendsBeside = async (to: string, kind: string) =>
    (await Promise.all([sends(), strangers(to, kind)]))[0]

  // Code that runs for the first time is slower.
  await sends()
  const addRow = openKeylessTable()
  for (const kind of wantedKinds()) {
    for (const to of [url, other.url]) await strangers(to, kind, 0.5)
    const before = cpuMs(pid)
    const flooded = await strangers(url, kind)
    const result: Result = {
      ...{ flooded, costMs: cpuMs(pid) - before },
      ...{ alone: [], beside: [], elsewhere: [] },
    }
    for (let round = 0; round < rounds; round++) {
      result.alone.push(await sends())
      result.beside.push(await sendsBeside(url, kind))
      result.elsewhere.push(await sendsBeside(other.url, kind))
      // No worker sends the accepted messages.
      await database.query('TRUNCATE notice')
    }
    addRow(kind, result)
  }
}

interface Result {
  /** The strangers' requests without sends. */
  flooded: FloodResult
  costMs: number
  alone: FloodResult[]
  /** The sends beside strangers' requests to the same server, and beside the same requests to another server. */
  beside: FloodResult[]
  elsewhere: FloodResult[]
}

/** A separate thread, so that writing these requests does not delay the sends. */
async function strangers(url: string, kind: string, forSeconds = seconds): Promise<FloodResult> {
  const bytes = Buffer.byteLength(keylessKinds[kind]?.() ?? '')
  const perSecond = Math.min(strangersPerSecond, maxBytesPerSecond / bytes)
  const options = { perSecond, seconds: forSeconds, connections: 64, endsInTime: true }
  const worker = new Worker(new URL('./flood-worker.ts', import.meta.url), {
    workerData: { url, kind, options },
  })
  const [result] = await once(worker, 'message')
  return result as FloodResult
}

/** Prints a row as soon as its kind is measured. */
function openKeylessTable(): (kind: string, result: Result) => void {
  const addRow = openTable(
    `${validPerSecond} valid sends a second beside ${strangersPerSecond} keyless ones, ${rounds} rounds of ${seconds} s each`,
    ...['p50 alone', 'p50 ms', 'p99 alone', 'p99 ms', '/ alone', 'p99 elsewhere', '/ alone'],
    ...['refused', 'per second', 'API µs', 'ms/kB', 'statuses'],
  )
  return (kind, { flooded, costMs, alone, beside, elsewhere }) => {
    const { sent, sentBytes, statuses } = flooded
    const [quiet, p99, p99Elsewhere] = [
      ofAll(alone, 0.99),
      ofAll(beside, 0.99),
      ofAll(elsewhere, 0.99),
    ]
    addRow(
      kind,
      ...[ofAll(alone, 0.5), ofAll(beside, 0.5), quiet, p99].map((ms) => ms.toFixed(1)),
      (p99 / quiet).toFixed(2),
      p99Elsewhere.toFixed(1),
      (p99Elsewhere / quiet).toFixed(2),
      beside.reduce((sum, one) => sum + one.sent - (one.statuses.get(202) ?? 0), 0),
      (sent / seconds).toFixed(0),
      ((costMs * 1_000) / sent).toFixed(0),
      // A request of less than a kB counts as one kB.
      (costMs / Math.max(sent, sentBytes / 1_024)).toFixed(2),
      [...statuses.keys()].sort().join(' '),
    )
  }
}

function ofAll(all: readonly FloodResult[], share: number): number {
  const latenciesMs = all.flatMap((one) => one.latenciesMs)
  return percentile(
    latenciesMs.sort((a, b) => a - b),
    share,
  )
}
