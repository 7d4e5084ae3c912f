import { expect, test } from 'vitest'
import { createApiKeys } from '../../../src/access/api-keys.ts'
import { readKeyWish } from '../../../src/access/new-key.ts'
import { databaseAt, testDatabase } from '../../tools/database.ts'
import { runCommand } from '../../tools/processes.ts'

const { url, pool } = await testDatabase()
const keys = (...args: string[]) => runCommand('keys', args, { DATABASE_URL: url })

test('keys: create shows a key that works once, list never shows it, revoke ends it', async () => {
  const empty = await keys('list')
  expect(empty).toMatchObject({ code: 0, stdout: expect.stringContaining('There are no keys') })

  const created = await keys('create', '--name', 'web', '--app', 'shop')
  expect(created.code).toBe(0)
  const [, id, app, token] = /id: +(\S+)\napp: +(\S+)\nkey: +(\S+)\n/.exec(created.stdout) ?? []
  expect(app).toBe('shop')
  const database = databaseAt(url, 1)
  expect(await createApiKeys(database).authenticate(token as string)).toEqual({
    id,
    app: 'shop',
    kind: 'secret',
    origins: [],
  })

  const listed = await keys('list')
  const prefix = token?.slice(0, 10)
  expect(listed.stdout).toMatch(
    new RegExp(
      `^${id}  secret  ${prefix}…  name=web  app=shop  made \\S+  used \\S+  active$`,
      'm',
    ),
  )
  expect(listed.stdout).not.toContain(token)

  expect(await keys('revoke', id as string)).toMatchObject({ code: 0 })
  expect((await keys('list')).stdout).toMatch(/ ended \d{4}-/)
  expect(await createApiKeys(database).authenticate(token as string)).toBe(null)
  const missing = await keys('revoke', '019aa000-0000-7000-8000-000000000000')
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining('There is no key') })
})

test('keys: a publishable key keeps its origins as browsers spell them, and prints each change', async () => {
  const origins = ['--origin', 'https://Bücher.example:443', '--origin', 'http://localhost:5173']
  const created = await keys('create', '--name', 'page', '--kind', 'publishable', ...origins)
  expect(created).toMatchObject({ code: 0, stderr: '' })
  expect(created.stdout).toContain(
    'Browsers write https://Bücher.example:443 as https://xn--bcher-kva.example.\n',
  )
  expect(created.stdout).toMatch(/^key: ppk_[\w-]{49}$/m)
  expect(created.stdout).toContain('Use it in pages of these origins.')
  expect(created.stdout).toContain('the app "page" has no secret key')
  await keys('create', '--name', 'web', '--app', 'page')
  const second = await keys('create', '--name', 'page', '--kind', 'publishable', ...origins)
  expect(second.stdout).not.toContain('Warning')
  const { stdout } = await keys('list')
  expect(stdout).toMatch(
    / {2}publishable {2}ppk_[\w-]{6}… {2}name=page {2}app=page {2}origins=https:\/\/xn--bcher-kva.example,http:\/\/localhost:5173 {2}made \S+ {2}never used {2}active$/m,
  )
})

test('keys: without --name, a key has the name of its app; without both, of the app default', async () => {
  const page = ['--kind', 'publishable', '--origin', 'https://shop.example']
  const created = await keys('create', ...page)
  expect(created).toMatchObject({ code: 0, stderr: '' })
  expect(created.stdout).toMatch(/^app: default\nkey: ppk_[\w-]{49}$/m)
  expect((await keys('create', '--app', 'depot')).stdout).toMatch(/^app: depot$/m)
  expect((await keys('create', '--kind', 'operator')).stdout).toMatch(/^app: \* \(every app\)$/m)
  const { stdout } = await keys('list')
  expect(stdout).toMatch(/ {2}publishable .* {2}name=default {2}app=default {2}/)
  expect(stdout).toMatch(/ {2}secret .* {2}name=depot {2}app=depot {2}/)
  expect(stdout).toMatch(/ {2}operator .* {2}name=default {2}app=\* {2}/)
})

test('keys: an operator’s key opens the console for every app, or for the one it names', async () => {
  const every = await keys('create', '--name', 'anna', '--kind', 'operator')
  expect(every).toMatchObject({ code: 0, stderr: '' })
  expect(every.stdout).toMatch(/^app: \* \(every app\)\nkey: pok_[\w-]{49}$/m)
  const one = await keys('create', '--name', 'ben', '--app', 'shop', '--kind', 'operator')
  expect(one.stdout).toMatch(/^app: shop$/m)
  const { stdout } = await keys('list')
  expect(stdout).toMatch(/ {2}operator {2}pok_[\w-]{6}… {2}name=anna {2}app=\* {2}/m)
  // No other kind may name it.
  expect(await keys('create', '--name', 'web', '--app', '*')).toMatchObject({ code: 1 })
})

test('keys: --expires gives an end that list shows, and a successor lives as long', async () => {
  const created = await keys('create', '--name', 'brief', '--expires', '30d')
  const id = /id: +(\S+)/.exec(created.stdout)?.[1] as string
  const endOf = async (name: string) => {
    const line = new RegExp(`^${name} .* ends (\\S+)$`, 'm').exec((await keys('list')).stdout)
    return Date.parse(line?.[1] as string) - Date.now()
  }
  expect(Math.abs((await endOf(id)) - 30 * 86_400_000)).toBeLessThan(60_000)
  const rotated = await keys('rotate', id, '--overlap', '1h')
  const successor = /id: +(\S+)/.exec(rotated.stdout)?.[1] as string
  expect(Math.abs((await endOf(id)) - 3_600_000)).toBeLessThan(60_000)
  expect(Math.abs((await endOf(successor)) - 30 * 86_400_000)).toBeLessThan(60_000)
})

test('keys: rotate shows another key of the same facts, and until when the old one passes', async () => {
  const created = await keys('create', '--name', 'turned', '--app', 'shop', '--kind', 'operator')
  const id = /id: +(\S+)/.exec(created.stdout)?.[1] as string
  const rotated = await keys('rotate', id, '--overlap', '2h')
  expect(rotated).toMatchObject({ code: 0, stderr: '' })
  const [, successor, endsAt] =
    /id: +(\S+)\napp: shop\nkey: pok_[\w-]{49}\n[\s\S]*\n\S+ ends (\S+)\.\n$/.exec(
      rotated.stdout,
    ) ?? []
  const inMs = Date.parse(endsAt as string) - Date.now()
  expect(Math.abs(inMs - 7_200_000)).toBeLessThan(60_000)
  const { stdout } = await keys('list')
  expect(stdout).toMatch(
    new RegExp(`^${successor}  operator  .* name=turned  app=shop .* active$`, 'm'),
  )
  expect(stdout).toMatch(new RegExp(`^${id}  operator  .* ends ${endsAt}$`, 'm'))

  const again = await keys('rotate', id)
  expect(again).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('already') })
  const atOnce = await keys('rotate', successor as string, '--overlap', '0s')
  expect(atOnce.stdout).toContain(`${successor} has ended.`)
  expect((await keys('rotate', successor as string)).stderr).toMatch(/ended .* Create a new key/)
})

const nobody = '019aa000-0000-7000-8000-000000000000'
test.each([
  [[], /^Usage:\n {2}npm run keys -- create /],
  [['create', 'web'], /^create takes no "web"[\s\S]*Usage:/],
  [['list', 'web'], /^list takes no "web"[\s\S]*Usage:/],
  [['foo'], /^keys has no command "foo"\.\n\nUsage:/],
  [['create', '--name', 'Web Shop'], /^"Web Shop" is not a valid name[\s\S]*Usage:/],
  [['create', '--name', 'web', '--colour', 'red'], /Usage:/],
  [
    ['create', '--name', 'web', '--overlap', '1h'],
    /^create has no option --overlap\.[\s\S]*Usage:/,
  ],
  [['list', '--origin', 'https://shop.example'], /Usage:/],
  [['revoke', 'web'], /^"web" is not the id of a key[\s\S]*Usage:/],
  [['rotate'], /^rotate needs the id of a key[\s\S]*Usage:/],
  [['create', '--name', 'x', '--expires', '4000d'], /--expires/],
  [['rotate', nobody], /There is no key/],
  [['rotate', nobody, '--overlap', '91d'], /at most 90d/],
])('keys %j: code 1, prints the fault, changes nothing', async (args, message) => {
  const count = () => pool.query('SELECT count(*) FROM api_key').then(({ rows }) => rows[0].count)
  const before = await count()
  const { code, stdout, stderr } = await keys(...args)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(message)
  expect(stderr).not.toMatch(/^ +at /m)
  expect(await count()).toBe(before)
})

const page = { name: 'web', kind: 'publishable' }
const many = Array.from({ length: 300 }, (_, at) => `https://a${at}.example`)
test.each([
  [/^"opAll" is not a valid name .* 1 to 32 of a-z/, { name: 'opAll', kind: 'operator' }],
  [/^"Shop" is not a valid name/, { name: 'web', app: 'Shop' }],
  [/one of secret, publishable, operator/, { name: 'web', kind: 'constructor' }],
  [/needs the origins/, page],
  [/Only publishable keys/, { name: 'web', origin: ['https://shop.example'] }],
  [/"null" is [\s\S]*"shop.example" has no/, { ...page, origin: ['null', 'shop.example'] }],
  [/at most 50 origins, not 300/, { ...page, origin: many }],
  [/--expires/, { expires: '0s' }],
  [/--expires/, { expires: '30' }],
  [/--expires/, { expires: 'never' }],
] as const)('a new key is refused: %s', (problem, wish) => {
  expect(readKeyWish(wish)).toEqual({ ok: false, problem: expect.stringMatching(problem) })
})

test('keys without DATABASE_URL, or with a database out of reach: code 1 and one clear line', async () => {
  const none = await runCommand('keys', ['list'])
  expect(none).toMatchObject({ code: 1, stderr: expect.stringMatching(/^DATABASE_URL is not set/) })
  const away = await runCommand('keys', ['list'], { DATABASE_URL: 'postgresql://127.0.0.1:9/x' })
  expect(away).toMatchObject({ code: 1, stderr: 'Failed: postgresql is out of reach\n' })
})
