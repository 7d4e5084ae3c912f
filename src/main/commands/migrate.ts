import { parseArgs } from 'node:util'
import { commandLine } from '../../base/command-line.ts'
import { loadEnvFile } from '../../config/env-file.ts'
import { migrateProblem } from '../../storage/database-ready.ts'
import { migrate } from '../../storage/migrate.ts'
import { databaseUrlOrStop, orUsage, stop } from './stop.ts'

/** `npm run migrate`: needs only DATABASE_URL, so it can run before any secret exists. */
orUsage(`Usage: ${commandLine('migrate')}`, () => parseArgs())
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
  stop(`Postern cannot migrate: ${migrateProblem(error)}`)
}
