/** The servers of a world (`test/worlds/worlds.ts`), private to this run, as the run's own servers are. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import ourExpress from 'express'
import pg from 'pg'
import { inject } from 'vitest'
import { startPrivatePostgres } from '../../src/dev/private-postgres.ts'
import { startPrivateRedis } from '../../src/dev/private-redis.ts'
import {
  findFreePort,
  runProgram,
  startServerProcess,
  untilReady,
} from '../../src/dev/server-process.ts'
import type { PostgresWorld, World } from '../worlds/worlds.ts'
import { asNobodyWhoReads, findProgram, isOpen, makeCertificate } from './debian-server.ts'
import { copyFreshPostgres, makeFreshPostgres } from './fresh-postgres.ts'

interface WorldServer {
  readonly url: string
  kill(): Promise<unknown>
}

interface WorldPostgres extends WorldServer {
  /** As the owner of the server. */
  readonly ownerUrl: string
}

/** Fast and not durable: what a test writes need not survive. */
const careless = { fsync: 'off', full_page_writes: 'off', max_connections: '400' }

/** The address has the role of Postern, and the database `postgres`. */
export async function startWorldPostgres(
  folder: string,
  world: PostgresWorld = {},
): Promise<WorldPostgres> {
  const dataDir = join(folder, 'postgres')
  const { flags, programs } = postgresOf({ ...world, settings: { ...careless, ...world.settings } })
  await makeFreshPostgres(folder, programs)
  await copyFreshPostgres(folder, dataDir)
  const server = await startPrivatePostgres({ dataDir, flags, programs })
  const url = new URL(server.url)
  if (world.role) {
    await makeRole(server.url, world.role)
    url.username = role
  }
  url.search = world.query ?? ''
  const ownerUrl = server.url
  if (!world.pooler) return { url: url.href, ownerUrl, kill: () => server.kill() }
  const pooler = await startPooler(folder, url)
  return { url: pooler.url, ownerUrl, kill: () => Promise.all([pooler.kill(), server.kill()]) }
}

/** The version and the settings of the world's server. */
export function postgresOf({ major, settings = {} }: PostgresWorld = {}): {
  flags: string[]
  programs: string | undefined
} {
  return {
    flags: Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    programs: major && debianPrograms(major),
  }
}

/** PgBouncer in session mode before all databases of the server. */
async function startPooler(folder: string, server: URL): Promise<WorldServer> {
  const port = await findFreePort()
  const [users, file] = [join(folder, 'users.txt'), join(folder, 'pgbouncer.ini')]
  await writeFile(users, `"${server.username}" "${server.password}"\n`)
  await writeFile(
    file,
    `[databases]
* = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = session
default_pool_size = 40
`,
  )
  const command: [string, ...string[]] = [findProgram('pgbouncer'), file]
  const pooler = startServerProcess(
    // It refuses to run as root, and only root can read a run's folder.
    process.getuid?.() === 0 ? asNobodyWhoReads(command) : command,
    join(folder, 'pgbouncer.log'),
    'SIGINT',
  )
  if (!(await untilReady(pooler, () => isOpen(port)))) throw new Error('PgBouncer did not start')
  const url = new URL(server.href)
  url.port = String(port)
  return { url: url.href, kill: () => pooler.kill() }
}

/** Where Debian has the programs of this version. */
function debianPrograms(major: number): string {
  const folder = `/usr/lib/postgresql/${major}/bin`
  findProgram(`${folder}/postgres`, `postgresql-${major}`)
  return folder
}

const role = 'shop'

/** The role may make and drop databases, as the tests do. Otherwise it has the rights of an owner. */
async function makeRole(url: string, settings: Readonly<Record<string, string>>): Promise<void> {
  await onServer(url, async (client) => {
    const quoted = client.escapeLiteral(decodeURIComponent(new URL(url).password))
    await client.query(`CREATE ROLE ${role} LOGIN CREATEDB PASSWORD ${quoted}`)
    await client.query(`GRANT pg_monitor, pg_signal_backend TO ${role}`)
    for (const [name, value] of Object.entries(settings)) {
      // A list is several values, each quoted by itself.
      const values = value.split(', ').map((one) => client.escapeLiteral(one))
      await client.query(`ALTER ROLE ${role} SET ${name} = ${values.join(', ')}`)
    }
  })
}

/** Makes a database, with the world's schema in it, and returns its address. */
export async function makeWorldDatabase(
  url: string,
  name: string,
  { roleSchema }: PostgresWorld = {},
): Promise<string> {
  await onServer(url, (client) => client.query(`CREATE DATABASE ${name}`))
  const target = new URL(url)
  target.pathname = `/${name}`
  if (roleSchema)
    await onServer(target.href, (client) => client.query(`CREATE SCHEMA ${roleSchema}`))
  return target.href
}

async function onServer(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

/** Undefined for the Redis that the machine has. */
export const redisProgramOf = ({ redis }: Pick<World, 'redis'>) =>
  redis === 'valkey' ? findProgram('valkey-server') : undefined

/** A Redis with numbered databases. `env`: what its clients need. */
export async function startWorldRedis(
  folder: string,
  { redis }: Pick<World, 'redis'> = {},
): Promise<WorldServer & { env: Record<string, string> }> {
  const flags = ['--appendonly', 'no', '--databases', '1024']
  const dataDir = join(folder, 'redis')
  if (redis !== 'tls') {
    const server = await startPrivateRedis({ dataDir, flags, program: redisProgramOf({ redis }) })
    return { url: server.url, kill: () => server.kill(), env: {} }
  }
  const { caFile, keyFile, certFile } = makeCertificate(folder)
  const port = await findFreePort()
  const tls = { port, 'cert-file': certFile, 'key-file': keyFile, 'auth-clients': 'no' }
  for (const [name, value] of Object.entries(tls)) flags.push(`--tls-${name}`, String(value))
  const server = await startPrivateRedis({ dataDir, flags })
  const url = new URL(server.url.replace('redis:', 'rediss:'))
  url.port = String(port)
  return { url: url.href, kill: () => server.kill(), env: { CA_FILE: caFile } }
}

/** This major version of Express. npm installs it for the run if the project has another. */
export async function expressOf(major: number): Promise<typeof ourExpress> {
  const range = `express@${major}`
  if (createRequire(import.meta.url)('express/package.json').version.startsWith(`${major}.`))
    return ourExpress
  const folder = await mkdtemp(join(inject('runFolder'), 'express-'))
  await writeFile(join(folder, 'package.json'), '{"private":true}')
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund']
  await runProgram(['npm', 'install', ...quietly, range], folder)
  return createRequire(join(folder, 'package.json'))('express')
}
