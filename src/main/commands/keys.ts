/** `npm run keys`: creates, lists, revokes and rotates API keys. It needs only DATABASE_URL. */
import { createKeyStore } from '../../access/key-store.ts'
import { keyLine, newKeyText } from '../../access/key-text.ts'
import { readKeyWish, readOverlap } from '../../access/new-key.ts'
import { commandLine } from '../../base/command-line.ts'
import { isId } from '../../base/ids.ts'
import { loadEnvFile } from '../../config/env-file.ts'
import { openDatabase } from '../../storage/database.ts'
import { databaseUrlOrStop, readCommand, stop } from './stop.ts'

const keysWith = (args: string) => commandLine('keys', args)

const usage = `Usage:
  ${keysWith('create [--name NAME] [--app APP] [--kind secret | operator] [--expires 30d]')}
  ${keysWith('create … --kind publishable --origin https://shop.example [--origin …]')}
  ${keysWith('list')}
  ${keysWith('revoke ID')}
  ${keysWith('rotate ID [--overlap 24h]')}

secret       for servers: all calls for its app
publishable  for pages of its origins: only sends and checks codes
operator     for people: only opens the console at the admin port

A key sees only the data of its app. Without --app, the app has the name of the key, and an operator key sees
every app. Without --name, the key has the name of its app, or "default". With --expires, the key ends after that
time. rotate creates a new key with the same kind, app, name, origins and time to live. The old key ends after
the overlap (0s: at once).`

loadEnvFile()
const aKey = { needs: `the id of a key. See ${keysWith('list')}` }
const {
  command,
  subject: id,
  values,
} = readCommand(
  'keys',
  usage,
  {
    name: { type: 'string' },
    app: { type: 'string' },
    kind: { type: 'string' },
    origin: { type: 'string', multiple: true },
    expires: { type: 'string' },
    overlap: { type: 'string' },
  },
  {
    create: { options: ['name', 'app', 'kind', 'origin', 'expires'] },
    list: {},
    revoke: aKey,
    rotate: { ...aKey, options: ['overlap'] },
  },
)
if (id && !isId(id)) stop(`"${id}" is not the id of a key. See ${keysWith('list')}.\n\n${usage}`)
// It connects at the first statement, so mistakes in the arguments are reported without PostgreSQL.
const database = openDatabase(databaseUrlOrStop(), { maxConnections: 1, onError: () => {} })
const keys = createKeyStore(database)
try {
  await { create, list, revoke, rotate }[command]()
} catch (error) {
  console.error(`Failed: ${(error as Error).message}`)
  process.exitCode = 1
} finally {
  await database.close()
}

async function create(): Promise<void> {
  const wish = readKeyWish(values)
  if (!wish.ok) return stop(`${wish.problem}\n\n${usage}`)
  const { key, respelled } = wish
  const made = await keys.create(key)
  for (const { from, to } of respelled) console.log(`Browsers write ${from} as ${to}.`)
  console.log(newKeyText({ ...key, ...made }))
  if (key.kind !== 'publishable') return
  const ofApp = (await keys.list()).filter(({ app, isRevoked }) => app === key.app && !isRevoked)
  if (ofApp.some(({ kind }) => kind === 'secret')) return
  console.log(`
Warning: no server can verify the passes of this key, because the app "${key.app}" has no secret key. If your server's
key has another app, revoke this key and create it again with --app and that app (see ${keysWith('list')}).`)
}

async function revoke(): Promise<void> {
  if (!(await keys.revoke(id))) stopUnknown()
  console.log(`Revoked ${id}. Running processes refuse it within a second.`)
}

async function rotate(): Promise<void> {
  const read = readOverlap(values.overlap)
  if (!read.ok) return stop(read.problem)
  const rotation = await keys.rotate(id, read.overlapMs)
  if (rotation.kind === 'unknown') return stopUnknown()
  if (rotation.kind === 'ending') {
    const at = rotation.at.toISOString()
    return stop(
      rotation.isRevoked
        ? `${id} ended ${at}. Create a new key with create.`
        : `${id} was already rotated and ends ${at}. Rotate the key that replaced it (see list).`,
    )
  }
  const { successorOf: old, token } = rotation
  console.log(newKeyText({ ...old, id: rotation.id, token }))
  console.log(`\n${id} ${old.isRevoked ? 'has ended' : `ends ${old.revokedAt?.toISOString()}`}.`)
}

function stopUnknown(): never {
  stop(`There is no key ${id}. See ${keysWith('list')}.`)
}

async function list(): Promise<void> {
  const all = await keys.list()
  if (all.length === 0)
    console.log(`There are no keys. Create one: ${keysWith('create --name web')}`)
  for (const key of all) console.log(keyLine(key))
}
