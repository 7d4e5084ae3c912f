import { expect, test } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import { openDatabase } from '../../src/db/database.ts'
import { testDatabase } from '../support/database.ts'
import { runCommand } from '../support/processes.ts'
import { releaseLater } from '../support/release.ts'

const { url, pool } = await testDatabase()
const keys = (...args: string[]) => runCommand('keys', args, { DATABASE_URL: url })

test('keys: create shows a key that works once, list never shows it, revoke ends it', async () => {
  const empty = await keys('list')
  expect(empty).toMatchObject({ code: 0, stdout: expect.stringContaining('There are no keys') })

  const created = await keys('create', '--name', 'web', '--app', 'shop')
  expect(created.code).toBe(0)
  const [, id, app, token] = /id: +(\S+)\napp: +(\S+)\nkey: +(\S+)\n/.exec(created.stdout) ?? []
  expect(app).toBe('shop')
  const database = openDatabase(url, { maxConnections: 1, onError: () => {} })
  releaseLater(() => database.close())
  expect(await createApiKeys(database).find(token as string)).toEqual({
    id,
    app: 'shop',
    kind: 'secret',
    origins: [],
  })

  const listed = await keys('list')
  expect(listed.stdout).toMatch(
    new RegExp(`^${id}  secret  name=web  app=shop  made .* active$`, 'm'),
  )
  expect(listed.stdout).not.toContain(token)

  expect(await keys('revoke', id as string)).toMatchObject({ code: 0 })
  expect((await keys('list')).stdout).toMatch(/ revoked \d{4}-/)
  expect(await createApiKeys(database).find(token as string)).toBe(null)
  const missing = await keys('revoke', '019aa000-0000-7000-8000-000000000000')
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no key') })
}, 60_000)

test.each([
  [[]],
  [['create', '--name', 'Web Shop']],
  [['create', '--name', 'web', '--kind', 'publishable']],
  [['create', '--name', 'web', '--colour', 'red']],
  [['revoke', 'web']],
])('keys %j: code 1, says how to use it, changes nothing', async (args) => {
  const count = () => pool.query('SELECT count(*) FROM api_key').then(({ rows }) => rows[0].count)
  const before = await count()
  const { code, stdout, stderr } = await keys(...args)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/Usage:|kind is secret/)
  expect(stderr).not.toMatch(/^ +at /m)
  expect(await count()).toBe(before)
})

test('keys without DATABASE_URL, or with a database out of reach: code 1 and one clear line', async () => {
  const none = await runCommand('keys', ['list'])
  expect(none).toMatchObject({ code: 1, stderr: expect.stringMatching(/^DATABASE_URL is not set/) })
  const away = await runCommand('keys', ['list'], { DATABASE_URL: 'postgresql://127.0.0.1:9/x' })
  expect(away).toMatchObject({ code: 1, stderr: 'Failed: postgresql is out of reach\n' })
})
