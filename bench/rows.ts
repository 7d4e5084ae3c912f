/**
 * `npm run bench -- rows`: the cost of stored notices.
 *
 * The same measurements with an empty table and with half a year of notices: sends through an API process and a
 * worker, look-ups of a recipient, the console's pages, bytes of disk and of log. Then sends beside the erasure of a
 * month's recipients, and beside the drop of a week.
 *
 *   npx node bench/rows.ts [rows] [recipients] [seconds per measurement]
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { idFloor } from '../src/base/ids.ts'
import { createSecrets } from '../src/crypto/secrets.ts'
import { hourMs } from '../src/notice/hour-counts.ts'
import { createNoticeStore } from '../src/notice/store.ts'
import { openDatabase } from '../src/storage/database.ts'
import { retain } from '../src/upkeep/retention.ts'
import { flood, validSend } from './flood.ts'
import { type Bench, key, openBench, secret } from './harness/bench.ts'
import { cpuMs, percentile } from './harness/measure.ts'
import { addOldRows, recipientOf } from './harness/old-rows.ts'
import { openTable } from './harness/table.ts'

const [rows = 1_000_000, subjects = 1_000_000, seconds = 20] = process.argv.slice(2).map(Number)
const sendsPerSecond = 100
const days = 180
const dayMs = 86_400_000

const policyFile = {
  policies: { captcha: [], notice: [], check: [] },
  providers: { sandbox: { kind: 'sandbox' } },
  routes: { sms: [{ use: ['sandbox'] }], email: [{ use: ['sandbox'] }] },
}
/** The settings that docs/servers.md recommends for a small machine. */
const settings = ['shared_buffers=2GB', 'max_wal_size=8GB', 'checkpoint_timeout=30min']

const bench = await openBench(settings.flatMap((setting) => ['-c', setting]))
try {
  await compare(bench)
} finally {
  await bench.close()
}

async function compare({ postgres, start, closeLater }: Bench): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url })
  client.on('error', () => {})
  await client.connect()
  closeLater(() => client.end())
  const database = openDatabase(postgres.url, { maxConnections: 2, onError: console.error })
  closeLater(() => database.close())
  const store = createNoticeStore(database, { claimTtlMs: 30_000 })
  const secrets = createSecrets(secret)
  const api = await start('src/main/api.ts', policyFile)
  const worker = await start('src/main/worker.ts', policyFile)

  const sends = (forSeconds = seconds) =>
    flood(api.url, {
      ...{ perSecond: sendsPerSecond, seconds: forSeconds, connections: 32 },
      next: () => validSend(key),
    })
  /** Sends with their cost in PostgreSQL, until the worker has sent them. */
  async function priceOf() {
    const use = async () => {
      await client.query('SELECT pg_stat_force_next_flush()')
      const { rows } = await client.query("SELECT pg_current_wal_insert_lsn() - '0/0' AS bytes")
      return { bytes: Number(rows[0].bytes), cpuMs: cpuMs(postgres.pid) }
    }
    await client.query('CHECKPOINT')
    const before = await use()
    const result = await sends()
    await drained()
    const after = await use()
    return {
      ...timesOf(result.latenciesMs),
      logBytes: (after.bytes - before.bytes) / result.sent,
      postgresUs: ((after.cpuMs - before.cpuMs) * 1_000) / result.sent,
    }
  }
  async function drained(): Promise<void> {
    const open = 'SELECT FROM notice WHERE due_at IS NOT NULL LIMIT 1'
    while (((await client.query(open)).rowCount ?? 0) > 0) await sleep(20)
  }
  async function timed(times: number, work: () => Promise<unknown>) {
    const tookMs: number[] = []
    for (let index = 0; index < times + 10; index++) {
      const startMs = performance.now()
      await work()
      // The first ones plan their statements.
      if (index >= 10) tookMs.push(performance.now() - startMs)
    }
    return timesOf(tookMs.sort((a, b) => a - b))
  }
  async function lookUp(): Promise<void> {
    const to = recipientOf(Math.floor(Math.random() * subjects))
    const recipientHashes = secrets.recipientHashes('sms', to)
    await Promise.all([
      store.search({ app: 'default', recipientHashes, limit: 20 }),
      store.scenesOf('default', recipientHashes),
    ])
  }
  const page = (state?: 'failed' | 'expired') => () =>
    store.browse({ state, from: idFloor(0), before: idFloor(2 ** 48 - 1), limit: 50 })
  const hour = () => store.countHour(undefined, Date.now() - 2 * hourMs)

  const titles = ['sends p50', 'p99 ms', 'PostgreSQL µs', 'log bytes', 'look-up p50', 'p99 ms']
  const pages = ['notices ms', 'failed ms', 'none ms', 'an hour ms']
  const addRow = openTable(`${sendsPerSecond} sends a second, ${seconds} s`, ...titles, ...pages)
  async function measureAll(name: string) {
    await sends(2)
    const price = await priceOf()
    const found = await timed(200, lookUp)
    const shown = []
    for (const work of [page(), page('failed'), page('expired'), hour]) {
      shown.push((await timed(10, work)).p50)
    }
    const { logBytes, postgresUs } = price
    addRow(
      ...([name, price.p50, price.p99, postgresUs.toFixed(0), logBytes.toFixed(0)] as const),
      ...[found.p50, found.p99, ...shown],
    )
    return price
  }

  await measureAll('empty')
  await client.query('TRUNCATE notice')
  await addOldRows(client, { rows, subjects, days, recipientDays: 60 })
  await measureAll(`${rows} rows`)
  await printSizes(client, rows)

  const log = { backgroundFailed: (task: string, error: unknown) => console.error(task, error) }
  const passOf = (recipientDays: number, rowDays: number, signal?: AbortSignal) =>
    retain({
      ...{ database, log, removeOldKeys: async () => 0, ...(signal && { signal }) },
      policy: {
        recipientMs: recipientDays * dayMs,
        rowsMs: rowDays * dayMs,
        decisionsMs: rowDays * dayMs,
        suppressionsMs: rowDays * dayMs,
      },
    })
  const addBeside = openTable('sends beside', 'p50 ms', 'p99 ms', 'of the work')
  async function beside(name: string, work: () => Promise<string>): Promise<void> {
    const [result, note] = await Promise.all([sends(), work()])
    const { p50, p99 } = timesOf(result.latenciesMs)
    addBeside(name, p50, p99, note)
  }
  await beside('nothing', async () => '')
  // Not beside the sends: a count reads every row.
  const named = async () =>
    (await client.query<{ n: number }>('SELECT count(recipient)::int AS n FROM notice')).rows[0]
      ?.n ?? 0
  const before = await named()
  let tookS = 0
  await beside('erasing recipients', async () => {
    const startMs = performance.now()
    await passOf(30, 10 * days)
    tookS = (performance.now() - startMs) / 1_000
    return `${tookS.toFixed(0)} s`
  })
  console.log(`erased ${before - (await named())} in ${tookS.toFixed(0)} s`)
  await beside('nothing', async () => '')
  await beside('dropping a week', async () => {
    const startMs = performance.now()
    await passOf(30, days - 8)
    return `${(performance.now() - startMs).toFixed(0)} ms`
  })
  await worker.stop()
  await api.stop()
}

function timesOf(sorted: readonly number[]) {
  const [p50, p99] = [0.5, 0.99].map((share) => percentile(sorted, share).toFixed(1))
  return { p50: p50 as string, p99: p99 as string }
}

async function printSizes(client: pg.Client, rows: number): Promise<void> {
  const { rows: sizes } = await client.query<{ name: string; bytes: number }>(
    `SELECT CASE relkind WHEN 'r' THEN 'the rows' ELSE regexp_replace(relname, '^notice_(\\d+_)*', '') END AS name,
            sum(pg_relation_size(oid))::float8 AS bytes
     FROM pg_class WHERE relname LIKE 'notice\\_%' AND relkind IN ('r', 'i')
     GROUP BY 1 HAVING sum(pg_relation_size(oid)) > 1e6 ORDER BY 2 DESC`,
  )
  const addRow = openTable('bytes per notice', 'bytes')
  for (const { name, bytes } of sizes) addRow(name, (bytes / rows).toFixed(0))
}
