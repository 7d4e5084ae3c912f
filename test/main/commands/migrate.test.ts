import { expect, test } from 'vitest'
import { testDatabase } from '../../tools/database.ts'
import { runCommand } from '../../tools/processes.ts'

test('an argument is refused, and --help prints the usage: neither reaches the database', async () => {
  const { url, pool } = await testDatabase()
  const { rows: schemas } = await pool.query('SELECT quote_ident(current_schema()) AS name')
  await pool.query(`DROP SCHEMA ${schemas[0].name} CASCADE; CREATE SCHEMA ${schemas[0].name}`)
  const migrate = (...args: string[]) => runCommand('migrate', args, { DATABASE_URL: url })
  const usage = expect.stringContaining('Usage: npm run migrate')
  expect(await migrate('--dry-run')).toMatchObject({ code: 1, stderr: usage })
  expect(await migrate('--help')).toMatchObject({ code: 0, stdout: usage })
  const { rows } = await pool.query("SELECT to_regclass('notice') AS notice")
  expect(rows).toEqual([{ notice: null }])
})
