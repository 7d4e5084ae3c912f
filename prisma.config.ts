/** For Prisma's own commands (`prisma migrate status`, `db pull`, `studio`): the database that Postern uses. */
import { existsSync } from 'node:fs'
import { defineConfig } from 'prisma/config'

if (existsSync('.env')) process.loadEnvFile()

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  // `prisma generate` needs none.
  datasource: { url: process.env.DATABASE_URL ?? '' },
})
