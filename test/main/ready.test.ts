import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import pg from 'pg'
import { describe, expect, test, vi } from 'vitest'
import { startReadiness } from '../../src/http/readiness.ts'
import type { Roles } from '../../src/main/compose.ts'
import { migrate } from '../../src/storage/migrate.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { lookAtRedis } from '../../src/storage/redis-ready.ts'
import { testDatabase } from '../tools/database.ts'
import { ownPostgres, ownRedis } from '../tools/own-servers.ts'
import { clientOf, noLimits, type Postern, processEnv, startPostern } from '../tools/postern.ts'
import { runCommand, startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'
import { ownCluster } from '../tools/redis-topologies.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

test('an API that reports ready listens, also when its bootstrap key had to wait', async () => {
  const [redis, database] = [await testRedis(), await testDatabase()]
  const env = processEnv({ redis, database, policyFile: { policies: noLimits } })
  const holder = await database.pool.connect()
  await holder.query('BEGIN; LOCK TABLE api_key')
  try {
    const api = await startProcess('api', { env })
    expect((await fetch(`${api.url}/nothing`, { headers: { connection: 'close' } })).status).toBe(
      404,
    )
    await holder.query('ROLLBACK')
    const { post } = clientOf(api.url, env.BOOTSTRAP_SECRET_KEY as string)
    await eventually(async () => (await post('/v1/notices/search', {})).status === 200)
  } finally {
    holder.release(true)
  }
})

test('an API that reports ready has run the INSERT of a send, without a row, so its first send finds it planned', async () => {
  const on = { redis: await testRedis(), database: await testDatabase() }
  await startPostern({
    on,
    roles: { api: true, worker: false },
    policyFile: { policies: noLimits },
  })
  const { rowCount } = await on.database.pool.query(
    `SELECT FROM pg_stat_activity
     WHERE datname = current_database() AND query LIKE '%WITH given AS%' AND pid <> pg_backend_pid()`,
  )
  expect(rowCount).toBeGreaterThan(0)
})

test('metrics name the role of their process: alerts look for an API, and for a worker, that is ready', async () => {
  const on = { redis: await testRedis(), database: await testDatabase() }
  async function readyAs(roles: Roles) {
    const { adminUrl } = await startPostern({ on, roles, policyFile: { policies: noLimits } })
    return eventually(async () => {
      const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
      return /^postern_ready\{process="(\w+)"\} 1$/m.exec(metrics)?.[1] ?? false
    })
  }
  expect(await readyAs({ api: true, worker: false })).toBe('api')
  expect(await readyAs({ api: false, worker: true })).toBe('worker')
  expect(await readyAs({ api: true, worker: true })).toBe('demo')
})

test('a part of the retention fails → its task is counted, and its other parts stand at 0', async () => {
  const on = { redis: await testRedis(), database: await testDatabase() }
  await on.database.pool.query('DROP TABLE retention')
  const { adminUrl } = await startPostern({ on, policyFile: { policies: noLimits } })
  await eventually(async () => {
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
    const counts = [
      ...metrics.matchAll(/^postern_background_failures_total\{task="(\w+)".*\} (\d+)$/gm),
    ]
    const byTask = Object.fromEntries(counts.map(([, task, count]) => [task, Number(count)]))
    // On a busy machine, a pass of each other task may fail too.
    expect(byTask).toMatchObject({ retention: 0, partitions: 0, old_rows: 0 })
    expect(byTask.erasure).toBeGreaterThan(0)
  })
})

/** One product with separate servers, which the test can stop or freeze. */
async function startBreakable() {
  const [redis, postgres] = await Promise.all([ownRedis(), ownPostgres()])
  const redisHand = closeLater(new Redis(redis.url), 'disconnect')
  const owner = await openClient(postgres.url)
  await owner.query(`CREATE DATABASE product`)
  await owner.query(`CREATE ROLE product LOGIN PASSWORD 'product' BYPASSRLS`)
  const inProduct = Object.assign(new URL(postgres.url), { pathname: '/product' }).href
  await migrate(inProduct)
  const schema = await openClient(inProduct)
  await schema.query('GRANT ALL ON ALL TABLES IN SCHEMA public TO product')
  const asProduct = Object.assign(new URL(inProduct), { username: 'product', password: 'product' })
  const postern = await startPostern({
    policyFile: { policies: noLimits },
    on: { redis: { url: redis.url, prefix: 'test:' }, database: { url: asProduct.href } } as never,
  })
  return { postern, redisHand, owner, schema }
}

async function openClient(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  releaseLater(() => client.end())
  return client
}

async function readyz({ adminUrl }: Pick<Postern, 'adminUrl'>, path = '/readyz') {
  const response = await fetch(`${adminUrl}${path}`, { headers: { connection: 'close' } })
  const body = (await response.json()) as { reasons?: string[]; warnings?: string[] }
  return { status: response.status, reasons: body.reasons ?? [], warnings: body.warnings ?? [] }
}

describe('I25: /readyz is 503 while no send could succeed, has the reason, and recovers alone', async () => {
  const { postern, redisHand, owner, schema } = await startBreakable()
  const send = async () =>
    (await postern.post('/v1/captchas', { channel: 'sms', to: '+8613800138000' })).status
  /** Connections keep the settings that they began with. */
  const reconnect = () =>
    owner.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'product'`)

  test.for([
    {
      what: 'Redis is out of memory',
      break: () => redisHand.config('SET', 'maxmemory', '1'),
      mend: () => redisHand.config('SET', 'maxmemory', '0'),
      reason: 'redis is out of memory (maxmemory is reached), so it refuses to write',
    },
    {
      what: 'Redis is a replica',
      break: () => redisHand.replicaof('127.0.0.1', 1),
      mend: () => redisHand.replicaof('NO', 'ONE'),
      reason: 'redis is a replica; point REDIS_URL at its master',
    },
    {
      what: 'Redis is a replica that takes writes and loses them',
      accepts: true,
      break: async () => {
        await redisHand.config('SET', 'replica-read-only', 'no')
        await redisHand.replicaof('127.0.0.1', 1)
      },
      mend: async () => {
        await redisHand.replicaof('NO', 'ONE')
        await redisHand.config('SET', 'replica-read-only', 'yes')
      },
      reason: 'redis is a replica; point REDIS_URL at its master',
    },
    {
      what: 'Redis would evict',
      accepts: true,
      break: () => redisHand.config('SET', 'maxmemory-policy', 'allkeys-lru'),
      mend: () => redisHand.config('SET', 'maxmemory-policy', 'noeviction'),
      reason: 'redis has maxmemory-policy allkeys-lru; set it to noeviction, or messages are lost',
    },
    {
      what: 'Redis gives our user no right to write',
      break: () => redisHand.call('ACL', 'SETUSER', 'default', '-@write'),
      mend: () => redisHand.call('ACL', 'SETUSER', 'default', '+@all'),
      reason: 'redis user lacks a right; check its ACL',
    },
    {
      what: 'Redis has too few replicas',
      break: () => redisHand.config('SET', 'min-replicas-to-write', '1'),
      mend: () => redisHand.config('SET', 'min-replicas-to-write', '0'),
      reason: 'redis refuses to write because it has too few replicas (min-replicas-to-write)',
    },
    {
      what: 'PostgreSQL is read-only',
      break: async () => {
        await owner.query('ALTER DATABASE product SET default_transaction_read_only = on')
        await reconnect()
      },
      mend: async () => {
        await owner.query('ALTER DATABASE product RESET default_transaction_read_only')
        await reconnect()
      },
      reason: 'postgresql is read-only (a standby, or default_transaction_read_only is on)',
    },
    {
      what: 'PostgreSQL gives our user no right to insert',
      break: () => schema.query('REVOKE INSERT ON notice FROM product'),
      mend: () => schema.query('GRANT INSERT ON notice TO product'),
      reason: 'postgresql user lacks a right: permission denied for table notice',
    },
    {
      what: 'PostgreSQL has no room for a row',
      break: () =>
        schema.query(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
          CREATE TRIGGER full_disk BEFORE INSERT ON notice FOR EACH ROW EXECUTE FUNCTION full_disk()`),
      mend: () => schema.query('DROP FUNCTION full_disk CASCADE'),
      reason: 'postgresql has no room left on its disk',
    },
    {
      what: 'PostgreSQL gives our user no right to read keys',
      accepts: true, // while they are remembered
      break: () => schema.query('REVOKE SELECT ON api_key FROM product'),
      mend: () => schema.query('GRANT SELECT ON api_key TO product'),
      reason: 'postgresql user lacks a right: permission denied for table api_key',
    },
    {
      what: 'PostgreSQL refuses our password',
      break: async () => {
        await owner.query(`ALTER ROLE product PASSWORD 'another'`)
        // A connection that is just being made may still have the old password.
        await eventually(async () => {
          await reconnect()
          return (await send()) !== 202
        })
      },
      mend: () => owner.query(`ALTER ROLE product PASSWORD 'product'`),
      reason: 'postgresql refuses the user or password; check DATABASE_URL',
    },
    {
      what: 'the database takes no connections',
      break: async () => {
        await owner.query('ALTER DATABASE product ALLOW_CONNECTIONS false')
        await reconnect()
      },
      mend: () => owner.query('ALTER DATABASE product ALLOW_CONNECTIONS true'),
      reason: /^postgresql reports: database "product" is not currently accepting connections/,
    },
    {
      what: 'a table is gone',
      status: 500,
      break: () => schema.query('ALTER TABLE notice RENAME TO notice_away'),
      mend: () => schema.query('ALTER TABLE notice_away RENAME TO notice'),
      reason: 'postgresql schema differs from this build: relation "notice" does not exist',
    },
  ] as {
    what: string
    /** The process is not ready, although it still accepts sends. */
    accepts?: true
    status?: number
    break(): Promise<unknown>
    mend(): Promise<unknown>
    reason: string | RegExp
  }[])('$what', async ({ accepts, status = 503, break: breakIt, mend, reason }) => {
    await eventually(async () => (await readyz(postern)).status === 200)
    expect(await eventually(async () => (await send()) === 202)).toBe(true)
    await breakIt()
    try {
      await eventually(async () => {
        const { reasons } = await readyz(postern)
        expect(reasons).toHaveLength(1)
        expect(reasons[0]).toEqual(
          typeof reason === 'string' ? reason : expect.stringMatching(reason),
        )
      })
      expect((await readyz(postern)).status).toBe(503)
      // Without PostgreSQL it still checks codes, so a proxy must keep it.
      const checks = String(reason).includes('postgresql')
      expect((await readyz(postern, '/usefulz')).status).toBe(checks ? 200 : 503)
      expect(await send()).toBe(accepts ? 202 : status)
    } finally {
      await mend()
    }
    await eventually(async () => (await readyz(postern)).status === 200)
    await eventually(async () => (await send()) === 202)
  })

  test('Redis keeps nothing over a restart: 200 with a warning', async () => {
    expect(await readyz(postern)).toEqual({ status: 200, reasons: [], warnings: [] })
    await redisHand.config('SET', 'appendonly', 'no')
    try {
      const { status, warnings } = await readyz(postern)
      expect(status).toBe(200)
      expect(warnings).toEqual([expect.stringContaining('appendonly no')])
    } finally {
      await redisHand.config('SET', 'appendonly', 'yes')
    }
    expect((await readyz(postern)).warnings).toEqual([])
  })
})

test('I25: one master of a cluster out of memory: the whole is not ready, and recovers alone', async () => {
  const { url, nodes } = await ownCluster()
  const cluster = closeLater(
    connectRedis(url, 'command', () => {}),
    'disconnect',
  )
  await eventually(async () => (await lookAtRedis(cluster, 'test:')).reasons.length === 0)
  for (const { url: nodeUrl } of nodes) {
    const hand = closeLater(new Redis(nodeUrl), 'disconnect')
    await hand.config('SET', 'maxmemory', '1')
    expect((await lookAtRedis(cluster, 'test:')).reasons).toEqual([
      'redis is out of memory (maxmemory is reached), so it refuses to write',
    ])
    await hand.config('SET', 'maxmemory', '0')
    expect((await lookAtRedis(cluster, 'test:')).reasons).toEqual([])
  }
})

describe('the log', () => {
  const isUp = async ({ adminUrl }: { adminUrl: string }) =>
    (await fetch(`${adminUrl}/livez`, { headers: { connection: 'close' } })).status === 200

  test('a wrong database name: "not ready" with the reason, and "ready" only once it is there', async () => {
    const [redis, postgres] = await Promise.all([testRedis(), ownPostgres()])
    const url = Object.assign(new URL(postgres.url), { pathname: '/later' }).href
    const env = processEnv({
      redis,
      database: { url } as never,
      policyFile: { policies: noLimits },
    })
    const api = await startProcess('api', { env: { ...env, LOG_LEVEL: 'info' }, isReady: isUp })
    const says = (line: RegExp) => eventually(() => line.test(api.output()))
    await says(/postgresql has no such database \(database \\"later\\" does not exist\)/)
    const { post } = clientOf(api.url, env.BOOTSTRAP_SECRET_KEY as string)
    await eventually(async () => (await readyz(api)).reasons.length > 0)
    const { status, body } = await post('/v1/captchas', { channel: 'sms', to: '+8613800138000' })
    expect({ status, code: body.code }).toEqual({ status: 503, code: 'unavailable' })

    const owner = await openClient(postgres.url)
    await owner.query('CREATE DATABASE later')
    // A probe checks at once. Without one, the process checks every 5 s.
    await eventually(async () => (await readyz(api)).reasons.join().startsWith('migrations'))
    await says(
      /"reasons":\["migrations not applied: \d+, the first is \d+_first; run npm run migrate"/,
    )
    expect(api.output()).not.toContain('"msg":"ready"')
    await migrate(url)
    await eventually(async () => (await readyz(api)).status === 200)
    await says(/"api":"http[^"]+","msg":"ready"/)
    expect(api.output().match(/"msg":"ready"/g)).toHaveLength(1)
  })

  test('Redis without appendonly: a warning, once', async () => {
    const [redis, database] = [await testRedis(), await testDatabase()]
    const env = processEnv({ redis, database })
    const worker = await startProcess('worker', { env: { ...env, LOG_LEVEL: 'info' } })
    await Promise.all([readyz(worker), readyz(worker), readyz(worker)])
    await readyz(worker)
    await worker.terminate()
    const count = (line: RegExp) => worker.output().match(line)?.length ?? 0
    // Once more after each time in which a server was away, as on a busy machine.
    expect(count(/"warning":"redis has appendonly no/g)).toBeGreaterThan(0)
    expect(count(/"warning":"redis has appendonly no/g)).toBeLessThanOrEqual(
      1 + count(/"msg":"not ready"/g),
    )
    expect(worker.output()).not.toMatch(/not ready.*appendonly/)
  })
})

describe('`migrate` that cannot: exit code 1 and one sentence', async () => {
  const postgres = await ownPostgres()
  const owner = await openClient(postgres.url)
  await owner.query(`CREATE ROLE guest LOGIN PASSWORD 'guest'`)
  const at = (changes: Partial<URL>) => Object.assign(new URL(postgres.url), changes).href

  test.for([
    [
      'no such database',
      { pathname: '/nowhere' },
      'postgresql has no such database (database "nowhere" does not exist); check DATABASE_URL',
    ],
    [
      'a wrong password',
      { password: 'wrong' },
      'postgresql refuses the user or password; check DATABASE_URL',
    ],
    ['nobody listens', { port: '1' }, 'postgresql is out of reach'],
    [
      'no right to make tables',
      { username: 'guest', password: 'guest' },
      'postgresql user lacks a right: permission denied for schema public',
    ],
  ] as const)('%s', async ([, changes, sentence]) => {
    const { code, stdout, stderr } = await runCommand('migrate', [], { DATABASE_URL: at(changes) })
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: `Postern cannot migrate: ${sentence}\n`,
    })
  })
})

describe('questions about readiness', () => {
  test('in a flood: looks are spaced, and no answer is older than its question', async () => {
    let looks = 0
    const { ask, begin, stop } = startReadiness({
      look: async () => {
        const began = ++looks
        await sleep(20)
        return { reasons: [`look ${began}`], warnings: [], canCheck: true }
      },
      onChange: () => {},
    })
    releaseLater(stop)
    const lookOf = async () => {
      const looksBefore = looks
      const [reason = ''] = (await ask()).reasons
      expect(Number(reason.slice('look '.length))).toBeGreaterThan(looksBefore)
    }
    const startMs = performance.now()
    await begin()
    while (performance.now() - startMs < 600) {
      await Promise.race([Promise.all(Array.from({ length: 100 }, lookOf)), sleep(5)])
    }
    await lookOf()
    expect(looks).toBeGreaterThan(1)
    expect(looks).toBeLessThanOrEqual(Math.ceil((performance.now() - startMs) / 250) + 1)
  })

  test('no question: the process looks every 5 s', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    let looks = 0
    const { begin, stop } = startReadiness({
      look: async () => ({ reasons: [`look ${++looks}`], warnings: [], canCheck: true }),
      onChange: () => {},
    })
    releaseLater(stop)
    await begin()
    vi.advanceTimersByTime(4_999)
    expect(looks).toBe(1)
    vi.advanceTimersByTime(1)
    await eventually(() => looks === 2)
  })

  test('the owner gets every change, and of nothing else', async () => {
    const answers = ['a', 'a', 'b', 'b', 'a']
    const told: string[] = []
    const { ask, begin, stop } = startReadiness({
      look: async () => ({ reasons: [answers.shift() ?? 'a'], warnings: [], canCheck: true }),
      onChange: ({ reasons }) => told.push(...reasons),
    })
    releaseLater(stop)
    await begin()
    for (let count = 0; count < 4; count++) await ask()
    expect(told).toEqual(['a', 'b', 'a'])
  })
})
