/**
 * The story in all worlds, as few as have what each of them has. `npm run test:worlds` runs it in each world alone, and
 * the rooms in these worlds.
 */
import { randomInt } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { makeCertificate } from '../tools/debian-server.ts'
import { environmentWithNode } from '../tools/node-versions.ts'
import type { OwnServer } from '../tools/own-servers.ts'
import { clientOf, processEnv, type Reply, startInHost } from '../tools/postern.ts'
import { runCommand, startProcess } from '../tools/processes.ts'
import { ownCluster, ownSentinel, ownSentinelWithPassword } from '../tools/redis-topologies.ts'
import { releaseLater } from '../tools/release.ts'
import {
  expressOf,
  makeWorldDatabase,
  startWorldPostgres,
  startWorldRedis,
} from '../tools/world.ts'
import { storyPolicy, tellStory } from './story.ts'
import { allAtOnce, hasSeveralRedis, together, type World, whyMissing, worlds } from './worlds.ts'

async function startServers(world: World): Promise<Record<string, string>> {
  const folder = mkdtempSync(join(inject('dataFolder'), 'world-'))
  const postgres = await startWorldPostgres(folder, world.postgres)
  releaseLater(() => postgres.kill())
  const DATABASE_URL = await makeWorldDatabase(postgres.url, 'story', world.postgres)
  if (hasSeveralRedis(world)) return { DATABASE_URL, ...(await startSeveralRedis(world, folder)) }
  const redis = await startWorldRedis(folder, world)
  releaseLater(() => redis.kill())
  return { DATABASE_URL, REDIS_URL: redis.url, ...redis.env }
}

async function startSeveralRedis(world: World, folder: string): Promise<Record<string, string>> {
  if (world.redis === 'sentinel') return { REDIS_URL: (await ownSentinel()).url }
  if (world.redis === 'sentinel-with-password') {
    return { REDIS_URL: (await ownSentinelWithPassword('p@ss&/?')).url }
  }
  const certificate = world.redis === 'tls-cluster' ? makeCertificate(folder) : undefined
  const { url, nodes } = await ownCluster(certificate)
  if (world.endsConnections) endConnections(nodes)
  return { REDIS_URL: url, ...(certificate ? { CA_FILE: certificate.caFile } : {}) }
}

/** One connection after the other, on one node after the other, until the test ends. */
function endConnections(nodes: readonly OwnServer[]): void {
  const clients = nodes.map(({ url }) => new Redis(url))
  const endOne = async (client: Redis) => {
    const list = String(await client.client('LIST'))
    const ids = [...list.matchAll(/^id=(\d+) .* cmd=(?!client)/gm)].map(([, id]) => id as string)
    const id = ids[randomInt(Math.max(1, ids.length))]
    if (id) await client.call('CLIENT', 'KILL', 'ID', id)
  }
  let ended = 0
  // The last one may meet the end of the test.
  const timer = setInterval(() => {
    endOne(clients[ended++ % clients.length] as Redis).catch(() => {})
  }, 100)
  releaseLater(() => {
    clearInterval(timer)
    for (const client of clients) client.disconnect()
  })
}

/** A 503 changes nothing, so its caller asks again when what was under way is given back. */
function patient(client: ReturnType<typeof clientOf>): ReturnType<typeof clientOf> {
  const again = async (ask: () => Promise<Reply>): Promise<Reply> => {
    const reply = await ask()
    if (reply.status !== 503) return reply
    await sleep(3_500)
    return again(ask)
  }
  return {
    ...client,
    post: (...args) => again(() => client.post(...args)),
    get: (...args) => again(() => client.get(...args)),
  }
}

/** Otherwise all of Postern could be wrong together, and the story would hold. */
async function expectTablesWhereWanted({ postgres = {} }: World, url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query(
    `SELECT schemaname AS name FROM pg_tables WHERE tablename = 'notice_default'`,
  )
  await client.end()
  const inAddress = new URL(url).searchParams.get('schema')
  expect(rows).toEqual([{ name: postgres.roleSchema ?? inAddress ?? 'public' }])
}

async function expectRefused(
  reason: string,
  migrated: { code: number; stderr: string },
  env: Readonly<Record<string, string>>,
): Promise<void> {
  expect(migrated.code).toBe(1)
  expect(migrated.stderr).toContain(reason)
  const api = await startProcess('api', {
    env,
    isReady: async ({ adminUrl }) => {
      const response = await fetch(`${adminUrl}/readyz`, { headers: { connection: 'close' } })
      return response.status === 503 && (await response.text()).includes(reason)
    },
  })
  const sent = await clientOf(api.url, env.BOOTSTRAP_SECRET_KEY as string).post('/v1/captchas', {
    channel: 'sms',
    to: '+8613800138000',
  })
  expect(sent.status).toBe(503)
}

const isEach = process.env.STORY === 'each'
const here = [...(isEach ? [allAtOnce] : []), ...worlds].filter((world) => {
  const reason = whyMissing(world)
  if (reason) test.skip(`the story in the world ${world.name} (skipped: ${reason})`)
  return !reason
})
for (const world of isEach ? here : together(here)) {
  const outcome = world.refused ? ' → refused with its reason' : ''
  test(`the story in the world ${world.name}${outcome}`, async () => {
    const servers = { ...(await startServers(world)), ...world.env }
    const env = processEnv({
      redis: { url: servers.REDIS_URL as string },
      database: { url: servers.DATABASE_URL as string },
      policyFile: storyPolicy,
      env: servers,
    })
    const migrated = await runCommand('migrate', [], env)
    if (world.refused) return expectRefused(world.refused, migrated, env)
    if (migrated.code !== 0) throw new Error(migrated.stderr)
    await expectTablesWhereWanted(world, servers.DATABASE_URL as string)
    const key = env.BOOTSTRAP_SECRET_KEY as string
    if (world.express) {
      const host = await startInHost(
        '/otp',
        env,
        'story:',
        undefined,
        await expressOf(world.express),
      )
      return tellStory(patient(clientOf(host.url, key)))
    }
    const path = world.node ? await environmentWithNode(world.node) : {}
    const [api] = await Promise.all(
      (['api', 'worker'] as const).map((role) =>
        startProcess(role, {
          env: { ...env, ...path },
          ...(world.node ? { command: ['node', `src/main/${role}.ts`] as const } : {}),
        }),
      ),
    )
    await tellStory(patient(clientOf(api?.url as string, key)))
  })
}
