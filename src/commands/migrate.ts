import { loadEnvFile } from '../config/env-file.ts'
import { postgresProblem } from '../storage/database-ready.ts'
import { migrate } from '../storage/migrate.ts'
import { databaseUrlOrStop, stop } from './stop.ts'

/** `npm run migrate`: needs only DATABASE_URL, so it can run before any secret exists. */
loadEnvFile()
const databaseUrl = databaseUrlOrStop()
try {
  const applied = await migrate(databaseUrl)
  console.log(
    applied.length > 0
      ? `applied: ${applied.join(', ')}`
      : 'nothing to apply: the schema is up to date',
  )
} catch (error) {
  stop(`Postern can not migrate: ${sentenceOf(error)}`)
}

function sentenceOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.cause)
    return `${error.message}, and nothing of it was applied: ${sentenceOf(error.cause)}`
  // Errors of Postern are sentences. Errors of PostgreSQL and of the system have a code.
  const { code } = error as { code?: string }
  if (code === 'ERR_INVALID_URL') return 'DATABASE_URL is not a URL'
  return code === undefined && !isConnectionError(error) ? error.message : postgresProblem(error)
}

/** The driver's errors for a broken or slow connection have no code. */
function isConnectionError(error: Error): boolean {
  return /connection|timeout/i.test(error.message)
}
