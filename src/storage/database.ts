/**
 * One pool of connections, used in two ways: Prisma's typed client for reads and rare writes, and
 * plain SQL on the same pool for the statements that run at the speed of traffic: they carry many rows
 * each, and Prisma has no form for them.
 */
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { Unavailable } from '../base/problems.ts'
import { PrismaClient } from './generated/client.ts'
import { openSession } from './session.ts'

export interface Database {
  readonly pool: pg.Pool
  /** A statement by name, so that PostgreSQL plans it once. Throws Unavailable when out of reach. */
  query<Row>(name: string, text: string, values: readonly unknown[]): Promise<Row[]>
  /** A read or a rare write through the typed client. Throws Unavailable when out of reach. */
  read<Result>(work: (prisma: PrismaClient) => Promise<Result>): Promise<Result>
  /**
   * PostgreSQL's time in milliseconds since 1970, for what must be known before a row is written (its
   * id): as of the newest connection, carried on by measuring. A process's own clock may be years off;
   * it counts only until there was a first connection.
   */
  nowMs(): number
  /**
   * Work on a connection outside the pool, for statements that may last longer than a caller waits.
   * Closed when the work ends, or at once when `signal` says so: then what is under way fails.
   */
  onOwnConnection<Result>(
    options: { statementTimeoutMs: number; signal?: AbortSignal | undefined },
    work: (client: pg.ClientBase) => Promise<Result>,
  ): Promise<Result>
  close(): Promise<void>
}

/** The server gives up first: a statement our side stopped waiting for must not commit afterwards. */
const statementTimeoutMs = 1_200
const queryTimeoutMs = 1_500
const connectTimeoutMs = 1_500
/** So that PostgreSQL's time is asked for again even where no connection ever rests. */
const connectionLivesS = 3_600

export function openDatabase(
  url: string,
  options: { maxConnections: number; onError: (error: Error) => void },
): Database {
  let clockAheadMs = () => Date.now() - performance.now()
  async function onConnect(client: pg.ClientBase): Promise<void> {
    const aheadMs = (await openSession(client, statementTimeoutMs)) - performance.now()
    clockAheadMs = () => aheadMs
  }

  const pool = new pg.Pool({
    connectionString: url,
    max: options.maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    query_timeout: queryTimeoutMs,
    idle_in_transaction_session_timeout: 10_000,
    keepAlive: true,
    maxLifetimeSeconds: connectionLivesS,
    onConnect,
  })
  pool.on('error', options.onError)
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })

  return {
    pool,
    async query<Row>(name: string, text: string, values: readonly unknown[]) {
      const asked = pool.query({ name, text, values: values as unknown[] })
      const { rows } = await asked.catch(failed)
      return rows as Row[]
    },
    read: (work) => work(prisma).catch(failed),
    nowMs: () => Math.floor(clockAheadMs() + performance.now()),
    async onOwnConnection({ statementTimeoutMs, signal }, work) {
      signal?.throwIfAborted()
      const client = new pg.Client({
        connectionString: url,
        connectionTimeoutMillis: connectTimeoutMs,
        statement_timeout: statementTimeoutMs,
        idle_in_transaction_session_timeout: 10_000,
        keepAlive: true,
      })
      // A lost connection fails the statement under way; beyond that there is nothing to do about it.
      client.on('error', () => {})
      const end = () => void client.end().catch(() => {})
      signal?.addEventListener('abort', end)
      try {
        await client.connect()
        await openSession(client, statementTimeoutMs)
        return await work(client)
      } finally {
        signal?.removeEventListener('abort', end)
        end()
      }
    },
    async close() {
      await prisma.$disconnect()
      await pool.end()
    },
  }
}

function failed(error: unknown): never {
  throw isOutOfReach(error) ? new Unavailable('postgresql', error) : error
}

/**
 * True for everything that says nothing about the statement itself: no connection, connection lost,
 * too slow, too many clients, shutting down, read-only standby, wrong database, user or rights.
 */
function isOutOfReach(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError)
    return false
  // What ends the connection, whatever its reason, was not about the statement.
  const inPrisma = errorInPrisma(error)
  const { severity } = (inPrisma ?? error) as { severity?: string }
  if (severity === 'FATAL') return true
  const code = inPrisma?.originalCode ?? (error as { code?: string }).code
  // Time-outs and lost connections of the driver carry no code, those of the system an E-name.
  if (code === undefined) return error.name === 'Error' || error.name === 'DriverAdapterError'
  if (/^P\d{4}$/.test(code)) return /^P1/.test(code) || code === 'P2024'
  // Classes of SQLSTATE: 08 connection, 28 user, 3D database, 53 resources, 57 operator intervention;
  // 25006 read-only, 42501 rights; 26000 and 42P05 a session that is not ours (session.ts).
  if (/^[0-9A-Z]{5}$/.test(code)) return /^(08|28|3D|53|57|25006|26000|42501|42P05)/.test(code)
  return true
}

/** Prisma has codes of its own for some errors of the server, and wraps the others. */
function errorInPrisma(error: Error): { originalCode?: string; severity?: string } | undefined {
  const { meta } = error as {
    meta?: { driverAdapterError?: { cause?: { originalCode?: string; severity?: string } } }
  }
  return meta?.driverAdapterError?.cause
}
