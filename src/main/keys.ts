/** `npm run keys`: makes, lists and revokes API keys. Needs DATABASE_URL and nothing else. */
import { parseArgs } from 'node:util'
import { createApiKeys } from '../access/api-keys.ts'
import { isId } from '../base/ids.ts'
import { openDatabase } from '../db/database.ts'
import { loadEnvFile } from './env-file.ts'

const usage = `Usage:
  npm run keys -- create --name NAME [--app APP] [--kind secret]
  npm run keys -- list
  npm run keys -- revoke ID

A key sees only what belongs to its app. The app is the key's name unless --app gives another, so two
keys of one app (to replace one by the other) share --app.`

function stop(message: string): never {
  console.error(message)
  process.exit(1)
}

loadEnvFile()
const databaseUrl = process.env.DATABASE_URL
if (!databaseUrl)
  stop('DATABASE_URL is not set, e.g. postgresql://postern:secret@localhost:5432/postern')

const { command, id, name, app } = readArguments()
const database = openDatabase(databaseUrl, { maxConnections: 1, onError: () => {} })
const keys = createApiKeys(database)
try {
  await runCommand()
} catch (error) {
  console.error(`Failed: ${(error as Error).message}`)
  process.exitCode = 1
} finally {
  await database.close()
}

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        name: { type: 'string' },
        app: { type: 'string' },
        kind: { type: 'string', default: 'secret' },
      },
    })
    const [command = '', id = ''] = positionals
    const isName = (text: string | undefined) =>
      text !== undefined && /^[a-z0-9][a-z0-9_-]{0,31}$/.test(text)
    const isRight =
      command === 'list' ||
      (command === 'revoke' && isId(id)) ||
      (command === 'create' && isName(values.name) && isName(values.app ?? values.name))
    if (!isRight) stop(usage)
    if (values.kind !== 'secret')
      stop(`There is no kind of key "${values.kind}"; the kind is secret.`)
    return { command, id, name: values.name ?? '', app: values.app ?? values.name ?? '' }
  } catch (error) {
    return stop(`${(error as Error).message}\n\n${usage}`)
  }
}

async function runCommand(): Promise<void> {
  if (command === 'create') {
    const { id, token } = await keys.create({ name, app })
    console.log(
      `id:  ${id}\napp: ${app}\nkey: ${token}\n\nThe key is shown only now. Keep it secret.`,
    )
  } else if (command === 'revoke') {
    if (!(await keys.revoke(id))) stop(`There is no key ${id}.`)
    console.log(`Revoked ${id}. Running processes notice within 5 s.`)
  } else {
    const all = await keys.list()
    if (all.length === 0)
      console.log('There are no keys. Make one: npm run keys -- create --name web')
    for (const { id, name, app, kind, createdAt, revokedAt } of all) {
      const state = revokedAt ? `revoked ${revokedAt.toISOString()}` : 'active'
      console.log(
        [id, kind, `name=${name}`, `app=${app}`, `made ${createdAt.toISOString()}`, state].join(
          '  ',
        ),
      )
    }
  }
}
