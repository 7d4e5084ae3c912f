/**
 * One pool of connections, used in two ways: Prisma's typed client for reads and rare writes, and
 * plain SQL on the same pool for the statements that run at the speed of traffic: they carry many rows
 * each, and Prisma has no form for them.
 */
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { Unavailable } from '../base/problems.ts'
import { PrismaClient } from './generated/client.ts'

export interface Database {
  readonly pool: pg.Pool
  /** A statement by name, so that PostgreSQL plans it once. Throws Unavailable when out of reach. */
  query<Row>(name: string, text: string, values: readonly unknown[]): Promise<Row[]>
  /** A read or a rare write through the typed client. Throws Unavailable when out of reach. */
  read<Result>(work: (prisma: PrismaClient) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/** The server gives up first: a statement our side stopped waiting for must not commit afterwards. */
const statementTimeoutMs = 1_200
const queryTimeoutMs = 1_500
const connectTimeoutMs = 1_500

export function openDatabase(
  url: string,
  options: { maxConnections: number; onError: (error: Error) => void },
): Database {
  const pool = new pg.Pool({
    connectionString: url,
    max: options.maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    query_timeout: queryTimeoutMs,
    idle_in_transaction_session_timeout: 10_000,
    keepAlive: true,
  })
  pool.on('error', options.onError)
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })

  return {
    pool,
    async query<Row>(name: string, text: string, values: readonly unknown[]) {
      try {
        const { rows } = await pool.query({ name, text, values: values as unknown[] })
        return rows as Row[]
      } catch (error) {
        throw isOutOfReach(error) ? new Unavailable('postgresql', error) : error
      }
    },
    async read(work) {
      try {
        return await work(prisma)
      } catch (error) {
        throw isOutOfReach(error) ? new Unavailable('postgresql', error) : error
      }
    },
    async close() {
      await prisma.$disconnect()
      await pool.end()
    },
  }
}

/**
 * True for everything that says nothing about the statement itself: no connection, connection lost,
 * too slow, too many clients, shutting down, read-only standby.
 */
export function isOutOfReach(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError)
    return false
  const code = sqlStateInPrisma(error) ?? (error as { code?: string }).code
  // Time-outs and lost connections of the driver carry no code, those of the system an E-name.
  if (code === undefined) return error.name === 'Error' || error.name === 'DriverAdapterError'
  if (/^P\d{4}$/.test(code)) return /^P1/.test(code) || code === 'P2024'
  // Classes of SQLSTATE: 08 connection, 53 resources, 57 operator intervention, 25006 read-only.
  if (/^[0-9A-Z]{5}$/.test(code)) return /^(08|53|57)/.test(code) || code === '25006'
  return true
}

/** Prisma has codes of its own for some errors of the server, and wraps the others. */
function sqlStateInPrisma(error: Error): string | undefined {
  const { meta } = error as {
    meta?: { driverAdapterError?: { cause?: { originalCode?: string } } }
  }
  return meta?.driverAdapterError?.cause?.originalCode
}
