import { migrate } from '../db/migrate.ts'

/** `npm run migrate`: needs DATABASE_URL and nothing else, so it can run before any secret exists. */
const databaseUrl = process.env.DATABASE_URL
if (!databaseUrl) {
  console.error('DATABASE_URL is not set, e.g. postgresql://postern:secret@localhost:5432/postern')
  process.exit(1)
}
const applied = await migrate(databaseUrl)
console.log(applied.length > 0 ? `applied: ${applied.join(', ')}` : 'nothing to apply')
