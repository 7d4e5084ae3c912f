/** Checks if PostgreSQL works now, and explains its errors to operators. */
import { commandLine } from '../base/command-line.ts'
import { Unavailable } from '../base/unavailable.ts'
import type { Database } from './database.ts'
import { knownMigrations, pendingMigrations } from './migrate.ts'
import { proveSession } from './session.ts'

/** Why no send can succeed now; empty if PostgreSQL works. Never throws. */
export async function reasonsPostgresNotReady({
  pool,
  read,
}: Pick<Database, 'pool' | 'read'>): Promise<string[]> {
  try {
    await proveSession(pool)
    const pending = await pendingMigrations(pool)
    if (pending.length > 0) return [notApplied(pending)]
    const { rows } = await pool.query({ name: 'ready', text: proofSql })
    const { mayReadKeys, encoding } = rows[0]
    if (!mayReadKeys) return [noRight('permission denied for table api_key')]
    if (!storesUnicode.test(encoding)) return [wrongEncoding(encoding)]
    await pool.query(roomSql).catch(unlessBounded)
    await read((prisma) => prisma.notice.findUnique({ where: { id: proofId } }))
    return []
  } catch (error) {
    const cause = error instanceof Unavailable ? error.cause : error
    if ((cause as { code?: string }).code !== 'NO_TABLES') return [postgresProblem(cause)]
    return [notApplied(await knownMigrations())]
  }
}

const notApplied = (names: readonly string[]) =>
  `migrations not applied: ${names.length}, the first is ${names[0]}; run ${commandLine('migrate')}`

/** No notice has this id. No week has its time, so the row would go into the default partition. */
const proofId = '00000000-0000-7000-8000-000000000000'

/**
 * All statements that write for a send and its delivery, but for no rows. PostgreSQL checks rights, columns and
 * read-only mode as usual, and writes nothing.
 */
const proofSql = `
  WITH a AS (INSERT INTO notice SELECT * FROM notice WHERE false),
       b AS (UPDATE notice SET state = state WHERE false),
       c AS (INSERT INTO idempotency_key SELECT * FROM idempotency_key WHERE false),
       d AS (UPDATE idempotency_key SET answer = answer WHERE false),
       e AS (DELETE FROM idempotency_key WHERE false),
       f AS (INSERT INTO event SELECT * FROM event WHERE false),
       g AS (UPDATE event SET tries = tries WHERE false),
       h AS (DELETE FROM event WHERE false),
       i AS (INSERT INTO early_receipt SELECT * FROM early_receipt WHERE false),
       j AS (UPDATE early_receipt SET look_at = look_at WHERE false),
       k AS (DELETE FROM early_receipt WHERE false)
  SELECT has_table_privilege('api_key', 'SELECT') AS "mayReadKeys",
    current_setting('server_encoding') AS encoding`

/** `SQL_ASCII` stores bytes as they come. */
const storesUnicode = /^(UTF8|SQL_ASCII)$/

const wrongEncoding = (encoding: string) =>
  `postgresql database has the encoding ${encoding}, which lacks most letters; make one with UTF8`

/**
 * Writes a row and takes it back. Vacuum frees its place soon, also while an old transaction is open. The row may find
 * room in a page that exists. So a temporary file of some 300 kB proves that the disk has room for a new page; it ends with
 * its statement.
 */
const roomSql = `
  BEGIN;
  INSERT INTO notice (id, app, kind, channel, recipient_hash, template, locale, state, created_at, expires_at)
  VALUES (overlay('${proofId}' PLACING right(gen_random_uuid()::text, 12) FROM 25)::uuid,
    '', 'notice', 'sms', '', '', '', 'failed', now(), now());
  SET LOCAL work_mem = '64kB';
  SELECT count(*) FROM generate_series(1, 20000);
  ROLLBACK`

/** A small `temp_file_limit` of the role refuses the file, which comes after the row. */
function unlessBounded(error: { code?: string }): void {
  if (error.code !== '53400') throw error
}

/** One sentence for an error of PostgreSQL or of its connection, without the address. */
function postgresProblem(error: unknown): string {
  const { code = '', message = '' } = error as { code?: string; message?: string }
  const known = problems.find(([pattern]) => pattern.test(code))?.[1]
  if (known) return known(message)
  // The driver's error has no code.
  if (/does not support SSL/.test(message)) return noTls
  // An unknown SQLSTATE explains more than "out of reach".
  if (/^(?!E)[0-9A-Z]{5}$/.test(code)) return `postgresql reports: ${message} (${code})`
  return 'postgresql is out of reach'
}

function noRight(message: string): string {
  return `postgresql user lacks a right: ${message}`
}

const noTls = 'postgresql does not speak TLS, which DATABASE_URL asks for (sslmode)'

const throughPooler =
  'postgresql is behind a pooler that changes sessions; point DATABASE_URL at PostgreSQL itself'

const problems: readonly (readonly [RegExp, (message: string) => string])[] = [
  [/^(POOLER|26000|42P05)$/, () => throughPooler],
  [
    /^08P01$/,
    (message) =>
      message.includes('startup parameter')
        ? throughPooler
        : `postgresql reports: ${message} (08P01)`,
  ],
  [/^3D000$/, (message) => `postgresql has no such database (${message}); check DATABASE_URL`],
  [/^28/, () => 'postgresql refuses the user or password; check DATABASE_URL'],
  [/^42501$/, noRight],
  [/^25006$/, () => 'postgresql is read-only (a standby, or default_transaction_read_only is on)'],
  [/^(42P01|42703|3F000)$/, (message) => `postgresql schema differs from this build: ${message}`],
  [/CERT|LEAF_SIGNATURE/, () => 'postgresql has a certificate that is not trusted; check CA_FILE'],
  [/^53100$/, () => 'postgresql has no room left on its disk'],
  [/^53300$/, () => 'postgresql has no connection left (max_connections)'],
  [/^53/, (message) => `postgresql is short of resources: ${message}`],
  [/^57P/, () => 'postgresql is out of reach (it is starting or shutting down)'],
]

/** The reason why `migrate` failed, for an operator. */
export function migrateProblem(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause)
    return `${error.message}, and nothing of it was applied: ${migrateProblem(error.cause)}`
  // Errors of Postern are sentences. Errors of PostgreSQL and of the system have a code.
  const { code } = error as { code?: string }
  if (code === 'ERR_INVALID_URL') return 'DATABASE_URL is not a URL'
  return code === undefined && !isConnectionError(error) ? error.message : postgresProblem(error)
}

/** The driver's errors for a broken or slow connection have no code. */
function isConnectionError(error: Error): boolean {
  return /connection|timeout/i.test(error.message)
}
