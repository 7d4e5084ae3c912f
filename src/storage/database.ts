/**
 * One pool of connections, used in two ways. Prisma's typed client makes reads and rare writes. Plain SQL on the same
 * pool makes the statements of every message: they have many rows each, and Prisma has no form for them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { readPostgresAddress } from '../base/postgres-address.ts'
import { Unavailable } from '../base/unavailable.ts'
import { PrismaClient } from './generated/client.ts'
import { enterSchema } from './schema.ts'
import { openSession } from './session.ts'

export interface Database {
  readonly pool: pg.Pool
  /** Runs a named statement, so that PostgreSQL plans it once. Throws Unavailable if out of reach. */
  query<Row>(name: string, text: string, values: readonly unknown[]): Promise<Row[]>
  /** Runs a read or a rare write through the typed client. Throws Unavailable if out of reach. */
  read<Result>(work: (prisma: PrismaClient) => Promise<Result>): Promise<Result>
  /**
   * PostgreSQL's time in milliseconds since 1970, for values that are needed before a row is written (its id). Taken
   * from the newest connection, and advanced by this process's timer. A process's clock may be years wrong; it is used
   * only before the first connection.
   */
  nowMs(): number
  /**
   * Runs `work` on a connection outside the pool, for statements that may take longer than a caller waits. The
   * connection is closed when the work ends, or at once when `signal` aborts or the database closes. That fails a running
   * statement.
   */
  onOwnConnection<Result>(
    options: { statementTimeoutMs: number; signal?: AbortSignal | undefined },
    work: (client: pg.ClientBase) => Promise<Result>,
  ): Promise<Result>
  close(): Promise<void>
}

/** PostgreSQL's time limit ends first, so that a statement can't commit after its caller has stopped waiting. */
const answerMs = 300
/** The pool keeps this many idle connections: a new one costs a message more than all of its statements. */
export const keptConnections = 3
/** Quiet connections are probed after this time. Else a firewall that forgets them would cost a message a time limit. */
const probeAfterMs = 30_000
/** Ends connections, so that PostgreSQL's time is read again even on busy ones. */
const connectionLivesS = 3_600
/** The most names. Support needs two to four. */
const maxNames = 8

export function openDatabase(
  url: string,
  options: {
    maxConnections: number
    onError: (error: Error) => void
    /**
     * Plans each statement once per connection, without its values, and by indexes. For workers: with thirty partitions
     * a plan of their few statements costs more than a run. Not for filters that callers choose.
     */
    plansOnce?: boolean
    /** PostgreSQL ends longer statements. By default 1.2 s, which leaves a request time for its answer. */
    statementTimeoutMs?: number
  },
): Database {
  const { statementTimeoutMs = 1_200 } = options
  const queryTimeoutMs = statementTimeoutMs + answerMs
  let clockAheadMs = () => Date.now() - performance.now()
  const { connectionString = url, schema: wantedSchema } = readPostgresAddress(url) ?? {}
  /** The schema of the newest connection. Unknown before the first one. */
  let schema: string | undefined
  async function onConnect(client: pg.ClientBase): Promise<void> {
    const aheadMs = (await openSession(client, statementTimeoutMs)) - performance.now()
    clockAheadMs = () => aheadMs
    schema = await enterSchema(client, wantedSchema)
    if (options.plansOnce) await client.query(plansOnceSql)
  }

  const pool = new pg.Pool({
    connectionString,
    max: options.maxConnections,
    min: Math.min(keptConnections, options.maxConnections),
    connectionTimeoutMillis: queryTimeoutMs,
    statement_timeout: statementTimeoutMs,
    query_timeout: queryTimeoutMs,
    idle_in_transaction_session_timeout: 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: probeAfterMs,
    maxLifetimeSeconds: connectionLivesS,
    onConnect,
  })
  pool.on('error', options.onError)
  const closing = new AbortController()

  const statementNameGenerator = createNames() as NameOf
  let typed: { schema: string; prisma: PrismaClient } | undefined
  /** Prisma names the schema in its statements, so its client is made after the first connection. */
  async function typedClient(): Promise<PrismaClient> {
    if (schema === undefined) (await pool.connect()).release()
    const now = schema as string
    if (typed?.schema !== now) {
      const adapter = new PrismaPg(pool, { schema: now, statementNameGenerator })
      typed = { schema: now, prisma: new PrismaClient({ adapter }) }
    }
    return typed.prisma
  }

  return {
    pool,
    query<Row>(name: string, text: string, values: readonly unknown[]) {
      return inTurn(async () => {
        const { rows } = await pool.query({ name, text, values: values as unknown[] })
        return rows as Row[]
      })
    },
    read: (work) => inTurn(async () => work(await typedClient())),
    nowMs: () => Math.floor(clockAheadMs() + performance.now()),
    async onOwnConnection({ statementTimeoutMs, signal }, work) {
      signal?.throwIfAborted()
      const client = new pg.Client({
        connectionString,
        connectionTimeoutMillis: queryTimeoutMs,
        statement_timeout: statementTimeoutMs,
        idle_in_transaction_session_timeout: 10_000,
        keepAlive: true,
      })
      // A lost connection fails its running statement; nothing else is needed.
      client.on('error', () => {})
      const end = () => void client.end().catch(() => {})
      try {
        await client.connect()
        // Not before: pg's `connect` never settles if `end` is called meanwhile.
        signal?.throwIfAborted()
        closing.signal.throwIfAborted()
        signal?.addEventListener('abort', end)
        closing.signal.addEventListener('abort', end)
        await openSession(client, statementTimeoutMs)
        await enterSchema(client, wantedSchema)
        return await work(client)
      } finally {
        signal?.removeEventListener('abort', end)
        closing.signal.removeEventListener('abort', end)
        end()
      }
    },
    async close() {
      closing.abort()
      await typed?.prisma.$disconnect()
      await pool.end()
    },
  }
}

/**
 * A plan that was made while a partition was empty would read all of it later. So no plan may read a whole table, or sort
 * all open notices because it found them without their order. Each entry of an index costs as much as a page: otherwise
 * PostgreSQL 15 looks for ids by reading the whole index of recipients, which is as small while it is empty.
 */
const plansOnceSql = [
  'plan_cache_mode = force_generic_plan',
  'enable_seqscan = off',
  'enable_bitmapscan = off',
  'cpu_index_tuple_cost = 1',
]
  .map((setting) => `SET ${setting}`)
  .join('; ')

type NameOf = NonNullable<ConstructorParameters<typeof PrismaPg>[1]>['statementNameGenerator']

/**
 * Names for look-ups by recipient, so that PostgreSQL plans them once. Such a look-up reads every partition of the notices,
 * and planning it costs several times as much as running it. Other statements get no name. Callers choose their filters,
 * and a connection keeps every plan with a name.
 */
function createNames() {
  const names = new Map<string, string>()
  return ({ sql }: { sql: string }): string | undefined => {
    if (!/"recipient_hash" (=|IN) /.test(sql)) return undefined
    if (names.size < maxNames && !names.has(sql)) names.set(sql, `recipient-${names.size}`)
    return names.get(sql)
  }
}

/**
 * Statements in the way of others fail in these ways, and nothing of them stays: serialization failure, deadlock, no lock.
 * The same statement succeeds in its turn.
 */
const outOfTurn = /^(40001|40P01|55P03)$/
const turnTries = 5

/** Runs a statement, again if others were in its way. Errors that are not about the statement become Unavailable. */
async function inTurn<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let triesLeft = turnTries - 1; ; triesLeft--) {
    try {
      return await run()
    } catch (error) {
      const isOutOfTurn = outOfTurn.test(codeOf(error) ?? '')
      if (!isOutOfTurn && !isOutOfReach(error)) throw error
      if (!isOutOfTurn || triesLeft === 0) throw new Unavailable('postgresql', error)
      await sleep(Math.random() * 20 * (turnTries - triesLeft))
    }
  }
}

/** The SQLSTATE, Prisma's code, or the code of a system error. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return errorInPrisma(error)?.originalCode ?? (error as { code?: string }).code
}

/**
 * True for errors that are not about the statement: no connection, connection lost, too slow, too many clients,
 * shutting down, read-only standby, wrong database, user or rights.
 */
function isOutOfReach(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError)
    return false
  // An error that ends the connection is not about the statement.
  const inPrisma = errorInPrisma(error)
  const { severity } = (inPrisma ?? error) as { severity?: string }
  if (severity === 'FATAL') return true
  const code = codeOf(error)
  // Time-outs and lost connections in the driver have no code; system errors have an E-name.
  if (code === undefined) return error.name === 'Error' || error.name === 'DriverAdapterError'
  if (/^P\d{4}$/.test(code)) return /^P1/.test(code) || code === 'P2024'
  // Classes of SQLSTATE: 08 connection, 28 user, 3D database, 53 resources, 57 operator intervention. Single codes:
  // 25006 read-only, 42501 rights, 26000 and 42P05 a changed session (session.ts).
  if (/^[0-9A-Z]{5}$/.test(code)) return /^(08|28|3D|53|57|25006|26000|42501|42P05)/.test(code)
  return true
}

/** Prisma has its own codes for some server errors and wraps the others. */
function errorInPrisma(error: Error): { originalCode?: string; severity?: string } | undefined {
  const { meta } = error as {
    meta?: { driverAdapterError?: { cause?: { originalCode?: string; severity?: string } } }
  }
  return meta?.driverAdapterError?.cause
}
