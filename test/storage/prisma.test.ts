import { expect, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { openPrismaEngine } from '../tools/prisma-engine.ts'

test('prisma migrate status: migrations of this runner are valid to Prisma: none missing, failed or changed', async () => {
  const { url, pool } = await testDatabase()
  const engine = await openPrismaEngine(url)
  expect(await engine.status()).toEqual({
    hasMigrationsTable: true,
    history: null,
    failedMigrationNames: [],
    editedMigrationNames: [],
  })
  await pool.query('DELETE FROM _prisma_migrations WHERE migration_name LIKE $1', ['%_event'])
  expect((await engine.status()).history).toMatchObject({ diagnostic: 'databaseIsBehind' })
})

test('prisma db pull: the migrated database equals schema.prisma, and an extra column would be noticed', async () => {
  const { url, pool } = await testDatabase()
  const engine = await openPrismaEngine(url)
  expect(await engine.drift()).toBe('-- This is an empty migration.\n')
  await pool.query('ALTER TABLE event ADD COLUMN stray text')
  expect(await engine.drift()).toContain('DROP COLUMN "stray"')
})
