/**
 * `npm run bench -- keyless`: what strangers can do to those who have a key (I21).
 *
 * Valid sends at a steady rate, for each kind of request that carries no valid key once alone and once
 * beside it, so that a slow minute of the machine touches both: wrong keys, forged receipts, forms of
 * 40,000 fields, hostile headers, paths of no route. Latencies count from when a request was due, so
 * that one that had to wait to be sent counts as slow. Beside them stands the processor time of the API
 * for the kind alone, per request and per kB it sent.
 *
 *   node bench/keyless.ts [seconds per measurement] [strangers per second] [only kinds whose name contains this]
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import pg from 'pg'
import { stringify } from 'yaml'
import { createKeyToken } from '../src/access/key-token.ts'
import { migrate } from '../src/db/migrate.ts'
import { startPrivatePostgres, startPrivateRedis } from '../src/dev/private-servers.ts'
import { findFreePort } from '../src/dev/server-process.ts'
import { type FloodResult, flood, keylessKinds, receiptProviders, validSend } from './flood.ts'

const [seconds = 5, strangersPerSecond = 1_000, wanted = ''] = [
  ...process.argv.slice(2, 4).map(Number),
  ...process.argv.slice(4),
] as [number?, number?, string?]
const validPerSecond = 100
/** 200 Mbit/s: large bodies come less often than the strangers per second. */
const maxBytesPerSecond = 25_000_000
const key = createKeyToken('secret')

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
  templates: join(import.meta.dirname, '../templates'),
  providers: { sandbox: { kind: 'sandbox' }, ...receiptProviders },
  routes: { sms: [{ use: ['sandbox'] }], email: [{ use: ['sandbox'] }] },
}

// Interrupted, the private servers end with the process.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))

const folder = mkdtempSync(join(tmpdir(), 'postern-bench-'))
const [redisServer, postgresServer] = await Promise.all([
  startPrivateRedis({ dataDir: join(folder, 'redis') }),
  startPrivatePostgres({ dataDir: join(folder, 'postgres') }),
])
let api: ChildProcess | undefined
try {
  await migrate(postgresServer.url)
  await runBench()
} finally {
  api?.kill('SIGKILL')
  await Promise.all([redisServer.stop(), postgresServer.stop()])
  rmSync(folder, { recursive: true, force: true })
}

async function runBench(): Promise<void> {
  const { url, adminUrl } = await startApi()
  const database = new pg.Client({ connectionString: postgresServer.url })
  database.on('error', () => {})
  await database.connect()

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
  console.log(
    `${validPerSecond} valid sends a second beside ${strangersPerSecond} keyless requests a second, ` +
      `${seconds} s each; µs are processor time of the API\n`,
  )
  console.log(
    row(
      '',
      'quiet p50',
      'p99 ms',
      'beside p50',
      'p99 ms',
      'ratio',
      'refused',
      'per s',
      'µs',
      'ms/kB',
      'statuses',
    ),
  )

  for (const name of Object.keys(keylessKinds)) {
    if (!name.includes(wanted)) continue
    await strangers(name, 0.5)
    const before = await cpuMsOf(adminUrl)
    const alone = await strangers(name)
    const costMs = (await cpuMsOf(adminUrl)) - before
    const quiet = await sends()
    const [valid, beside] = await Promise.all([sends(), strangers(name)])
    const [quietP99, p99] = [at(quiet.latenciesMs, 0.99), at(valid.latenciesMs, 0.99)]
    console.log(
      row(
        name,
        at(quiet.latenciesMs, 0.5).toFixed(1),
        quietP99.toFixed(1),
        at(valid.latenciesMs, 0.5).toFixed(1),
        p99.toFixed(1),
        (p99 / quietP99).toFixed(2),
        valid.sent - (valid.statuses.get(202) ?? 0),
        (beside.sent / seconds).toFixed(0),
        ((costMs * 1_000) / alone.sent).toFixed(0),
        // A request of less than a kB counts as one.
        (costMs / Math.max(alone.sent, alone.sentBytes / 1_024)).toFixed(2),
        [...alone.statuses.keys()].sort().join(' '),
      ),
    )
    // What it left is not carried by anybody.
    await database.query('TRUNCATE notice')
  }
  await database.end()
}

async function startApi(): Promise<{ url: string; adminUrl: string }> {
  const [port, adminPort] = [await findFreePort(), await findFreePort()]
  const configFile = join(folder, 'postern.yaml')
  writeFileSync(configFile, stringify(policyFile))
  api = spawn(process.execPath, ['src/main/api.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      HOST: '127.0.0.1',
      DATABASE_URL: postgresServer.url,
      REDIS_URL: redisServer.url,
      SECRET: 'a secret for the benchmark, 32 bytes or more',
      BOOTSTRAP_SECRET_KEY: key,
      POSTERN_CONFIG: configFile,
    },
  })
  await once(api.stdout as NonNullable<typeof api.stdout>, 'data')
  api.stdout?.resume()
  return { url: `http://127.0.0.1:${port}`, adminUrl: `http://127.0.0.1:${adminPort}` }
}

/** Processor time the API has used. */
async function cpuMsOf(adminUrl: string): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  return Number(/^postern_process_cpu_seconds_total\{[^}]*\} (\S+)/m.exec(text)?.[1]) * 1_000
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
}

function row(name: string, ...cells: (string | number)[]): string {
  return name.padEnd(44) + cells.map((cell) => String(cell).padStart(11)).join('')
}
