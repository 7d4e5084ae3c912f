/**
 * PostgreSQL behind PgBouncer: an address that can't work is refused with its reason, and nothing is half done there.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findFreePort } from '../../src/dev/server-process.ts'
import { testDatabase } from '../tools/database.ts'
import {
  asNobodyWhoReads,
  findProgram,
  isOpen,
  serverFolder,
  startDebianServer,
} from '../tools/debian-server.ts'
import { noLimits, posternEnv, startPostern } from '../tools/postern.ts'
import { runCommand } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'

function findPgbouncer(): string | undefined {
  try {
    return findProgram('pgbouncer')
  } catch {
    return undefined
  }
}
const program = findPgbouncer()

/** Its address for this database. */
async function startPgbouncer(databaseUrl: string, settings: readonly string[]): Promise<string> {
  const folder = serverFolder('pgbouncer')
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  const ownPort = await findFreePort()
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
     pooled = host=${hostname} port=${port} user=${username} password=${password} dbname=${pathname.slice(1)}
     [pgbouncer]
     listen_addr = 127.0.0.1\nlisten_port = ${ownPort}\nunix_socket_dir =\nauth_type = any
     ${settings.join('\n')}`.replace(/^ +/gm, ''),
  )
  const command: [string, ...string[]] = [program as string, file]
  const whole = process.getuid?.() === 0 ? asNobodyWhoReads(command) : command
  await startDebianServer(folder, whole, () => isOpen(ownPort))
  return `postgresql://any@127.0.0.1:${ownPort}/pooled`
}

const reason =
  'postgresql is behind a pooler that changes sessions; point DATABASE_URL at PostgreSQL itself'
const dropsSettings =
  'ignore_startup_parameters = extra_float_digits,statement_timeout,idle_in_transaction_session_timeout,options'

test.skipIf(!program).each([
  ['in transaction mode, as it comes', ['pool_mode = transaction']],
  [
    'in transaction mode, dropping what it does not know',
    ['pool_mode = transaction', dropsSettings],
  ],
  ['in session mode, dropping what it does not know', ['pool_mode = session', dropsSettings]],
])(
  'F36: PgBouncer %s → not ready with the reason, sends are 503, migrate and doctor name it (skipped where pgbouncer cannot be installed)',
  async (_, settings) => {
    const [redis, direct] = [await testRedis(), await testDatabase()]
    const url = await startPgbouncer(direct.url, settings)
    const postern = await startPostern({
      on: { redis, database: direct },
      env: { DATABASE_URL: url },
      policyFile: { policies: noLimits },
      // A key of the database could not be read.
      roles: { api: true, worker: false },
    })
    const ready = await fetch(`${postern.adminUrl}/readyz`)
    expect(ready.status).toBe(503)
    expect(await ready.json()).toMatchObject({ reasons: [reason] })
    const calls = Array.from({ length: 12 }, () =>
      postern.post('/v1/captchas', { channel: 'sms', to: '+8613800138000' }),
    )
    for (const { status } of await Promise.all(calls)) expect(status).toBe(503)

    const env = posternEnv({ redis, database: direct, env: { DATABASE_URL: url } })
    const [migrated, examined] = await Promise.all([
      runCommand('migrate', [], env),
      runCommand('doctor', [], env),
    ])
    expect(migrated).toMatchObject({ code: 1, stderr: `Postern cannot migrate: ${reason}\n` })
    expect(examined.code).toBe(1)
    expect(examined.stdout).toContain(reason)
    const locks =
      "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    expect((await direct.pool.query(locks)).rowCount).toBe(0)
  },
)

test.skipIf(!program)(
  'F36: PgBouncer in transaction mode whose user has Postern’s time limit → sends are 503 at worst, never 500 (skipped where pgbouncer cannot be installed)',
  async () => {
    const [redis, direct] = [await testRedis(), await testDatabase()]
    await direct.pool.query(`DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET statement_timeout = 1200', current_database()); END $$`)
    const url = await startPgbouncer(direct.url, [
      'pool_mode = transaction',
      dropsSettings,
      'default_pool_size = 3',
    ])
    const postern = await startPostern({
      on: { redis, database: { ...direct, url } },
      policyFile: { policies: noLimits },
      // A worker tries to write outcomes for longer than a test has for its end.
      roles: { api: true, worker: false },
    })
    const statuses = new Set<number>()
    for (let round = 0; round < 5; round++) {
      const calls = Array.from({ length: 20 }, (_, at) =>
        postern.post('/v1/notices/search', { channel: 'sms', to: `+86138001380${10 + at}` }),
      )
      const sends = Array.from({ length: 20 }, (_, at) =>
        postern.post('/v1/captchas', { channel: 'sms', to: `+861380013${8000 + round * 20 + at}` }),
      )
      for (const { status } of await Promise.all([...calls, ...sends])) statuses.add(status)
    }
    expect([...statuses].filter((status) => status === 500)).toEqual([])
  },
)
