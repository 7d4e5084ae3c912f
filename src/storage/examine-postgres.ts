import { about, type Finding } from '../base/finding.ts'
import { type Database, openDatabase } from './database.ts'
import { reasonsPostgresNotReady } from './database-ready.ts'
import { lookAtClock } from './examine-clock.ts'
import { lookForOldTransaction } from './examine-transactions.ts'

const oldestVersion = 14

/** `more`: further checks, which need a working database. */
export async function examinePostgres(
  url: string,
  more: (database: Database) => Promise<Finding[]> = async () => [],
): Promise<Finding[]> {
  const { ok, error } = about('postgresql')
  const database = openDatabase(url, { maxConnections: 1, onError: () => {} })
  try {
    const reasons = await reasonsPostgresNotReady(database)
    if (reasons.length > 0) {
      return reasons.map((reason) => error(reason, 'see "Ready or not" in docs/operations.md'))
    }
    const ready = ok('writable, schema and rights are correct')
    return [ready, ...(await lookAtServer(database)), ...(await more(database))]
  } finally {
    await database.close()
  }
}

async function lookAtServer({ pool }: Database): Promise<Finding[]> {
  const { ok, warning, error } = about('postgresql')
  const { rows } = await pool.query(factsSql)
  const { version, fsync, commit } = rows[0]
  const findings = [
    Number(version) >= oldestVersion * 10_000
      ? ok(`version ${Math.floor(Number(version) / 10_000)}`)
      : error(`version ${version}`, `Postern needs ${oldestVersion} or later`),
  ]
  if (fsync === 'off') {
    findings.push(
      error('fsync is off: a crash of the machine may destroy the database', 'set fsync = on'),
    )
  }
  if (commit === 'off') {
    const message = 'synchronous_commit is off: a crash loses messages that were accepted'
    findings.push(warning(message, 'set synchronous_commit = on'))
  }
  const clock = await lookAtClock('postgresql', async () => {
    const now = await pool.query('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 ms')
    return Number(now.rows[0].ms)
  })
  return [...findings, await lookForOldTransaction(pool), clock]
}

const factsSql = `
  SELECT current_setting('server_version_num') AS version, current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS commit`
