/**
 * `npm run bench -- keyless`: what strangers can do to those who have a key (I21).
 *
 * Valid sends at a steady rate, for each kind of request that carries no valid key once alone and once
 * beside it, so that a slow minute of the machine touches both: wrong keys, forged receipts, forms of
 * 40,000 fields, hostile headers, paths of no route. Latencies count from when a request was due, so
 * that one that had to wait to be sent counts as slow. Beside them stands the processor time of the API
 * for the kind alone, per request and per kB it sent.
 *
 *   npx node bench/keyless.ts [seconds per measurement] [strangers per second] [only kinds whose name contains this]
 */
import { once } from 'node:events'
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

const [seconds = 5, strangersPerSecond = 1_000, wanted = ''] = [
  ...process.argv.slice(2, 4).map(Number),
  ...process.argv.slice(4),
] as [number?, number?, string?]
const validPerSecond = 100
/** 200 Mbit/s: large bodies come less often than the strangers per second. */
const maxBytesPerSecond = 25_000_000

const policyFile = {
  // The numbers of the sends never come again; a rule by address would refuse the bench itself.
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

async function compare({ postgres, start, closeLater }: Bench): Promise<void> {
  const { url, pid } = await start('src/main/api.ts', policyFile)
  const database = new pg.Client({ connectionString: postgres.url })
  database.on('error', () => {})
  await database.connect()
  closeLater(() => database.end())

  const sends = () =>
    flood(url, {
      perSecond: validPerSecond,
      seconds,
      connections: 32,
      next: () => validSend(key),
    })
  /** In a thread of their own, so that writing theirs does not delay the sends beside them. */
  async function strangers(kind: string, forSeconds = seconds): Promise<FloodResult> {
    const bytes = Buffer.byteLength(keylessKinds[kind]?.() ?? '')
    const perSecond = Math.min(strangersPerSecond, maxBytesPerSecond / bytes)
    const options = { perSecond, seconds: forSeconds, connections: 64 }
    const worker = new Worker(new URL('./flood-worker.ts', import.meta.url), {
      workerData: { url, kind, options },
    })
    const [result] = await once(worker, 'message')
    return result as FloodResult
  }

  // What runs for the first time is slower than it will be.
  await sends()
  const addRow = openTable(
    `${validPerSecond} valid sends a second beside ${strangersPerSecond} keyless ones, ${seconds} s each`,
    'quiet p50',
    'p99 ms',
    'beside p50',
    'p99 ms',
    'ratio',
    'refused',
    'per second',
    'API µs',
    'ms/kB',
    'statuses',
  )

  for (const name of Object.keys(keylessKinds)) {
    if (!name.includes(wanted)) continue
    await strangers(name, 0.5)
    const before = cpuMs(pid)
    const alone = await strangers(name)
    const costMs = cpuMs(pid) - before
    const quiet = await sends()
    const [valid, beside] = await Promise.all([sends(), strangers(name)])
    const [quietP99, p99] = [
      percentile(quiet.latenciesMs, 0.99),
      percentile(valid.latenciesMs, 0.99),
    ]
    addRow(
      name,
      percentile(quiet.latenciesMs, 0.5).toFixed(1),
      quietP99.toFixed(1),
      percentile(valid.latenciesMs, 0.5).toFixed(1),
      p99.toFixed(1),
      (p99 / quietP99).toFixed(2),
      valid.sent - (valid.statuses.get(202) ?? 0),
      (beside.sent / seconds).toFixed(0),
      ((costMs * 1_000) / alone.sent).toFixed(0),
      // A request of less than a kB counts as one.
      (costMs / Math.max(alone.sent, alone.sentBytes / 1_024)).toFixed(2),
      [...alone.statuses.keys()].sort().join(' '),
    )
    // What it left is not carried by anybody.
    await database.query('TRUNCATE notice')
  }
}
