import { randomInt } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { migrate } from '../../src/db/migrate.ts'
import { type OwnServer, ownPostgres, ownRedis } from './own-servers.ts'
import { type PosternProcess, startProcess } from './processes.ts'
import { releaseLater } from './release.ts'
import { eventually } from './wait.ts'

/**
 * The product as it is deployed, to be broken: API and worker processes over a Redis and a PostgreSQL
 * of the test's own, sending through the webhook provider to a far end that counts.
 */
export interface Fleet {
  readonly redis: OwnServer
  readonly postgres: OwnServer
  readonly apis: PosternProcess[]
  readonly workers: PosternProcess[]
  readonly farEnd: FarEnd
  startApi(): Promise<PosternProcess>
  startWorker(): Promise<PosternProcess>
  /** One request to an API process, a random one unless named. */
  post(path: string, body: unknown, api?: PosternProcess): Promise<Reply>
  /** States of these notices, by PostgreSQL. */
  states(ids: readonly string[]): Promise<Map<string, string>>
  query(sql: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
}

export interface Reply {
  status: number
  body: Record<string, unknown>
  tookMs: number
}

export interface FarEnd {
  readonly url: string
  /** How often each notice reached it. */
  readonly calls: Map<string, number>
  /** Answers with this status, or not at all with 0. */
  status: number
}

export const fleetKey = 'psk_fleet_0123456789abcdef'

export interface FleetOptions {
  apis?: number
  workers?: number
  redisFlags?: readonly string[]
  /** Lines under `policies:`; unlimited but for the recipient by default. */
  policies?: string
}

const defaultPolicies = `
  captcha:
    - { name: recipient, key: "{channel}:{to}", sliding: [1 per 60s, 5 per 1h, 10 per 24h] }
  notice: []
  check:
    - { name: guesses, key: "{channel}:{to}", lockout: { limit: 3, window: 5m, lock: 15m } }`

export async function startFleet(options: FleetOptions = {}): Promise<Fleet> {
  const [redis, postgres, farEnd] = await Promise.all([
    ownRedis(options.redisFlags),
    ownPostgres(),
    startFarEnd(),
  ])
  await migrate(postgres.url)
  const policyFile = join(postgres.dataDir, '..', `fleet-${postgres.port}.yaml`)
  await writeFile(policyFile, policyFileOf(farEnd, options.policies ?? defaultPolicies))
  const env = {
    DATABASE_URL: postgres.url,
    REDIS_URL: redis.url,
    SECRET: 'a secret of the fault tests, 32 bytes or more',
    BOOTSTRAP_SECRET_KEY: fleetKey,
    POSTERN_CONFIG: policyFile,
    LOG_LEVEL: 'warn',
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 512 })
  releaseLater(() => agent.destroy())
  const database = new pg.Pool({ connectionString: postgres.url, max: 2 })
  database.on('error', () => {})
  releaseLater(() => database.end())

  const apis: PosternProcess[] = []
  const workers: PosternProcess[] = []
  const fleet: Fleet = {
    redis,
    postgres,
    apis,
    workers,
    farEnd,
    async startApi() {
      const api = await startProcess('api', { env })
      apis.push(api)
      return api
    },
    async startWorker() {
      const worker = await startProcess('worker', { env })
      workers.push(worker)
      return worker
    },
    post(path, body, api) {
      const alive = apis.filter((each) => !each.hasExited())
      const target = api ?? alive[randomInt(Math.max(1, alive.length))]
      if (!target) throw new Error('no API process is up')
      return post(agent, target.url + path, body)
    },
    async states(ids) {
      const rows = await fleet.query('SELECT id, state FROM notice WHERE id = ANY($1::uuid[])', [
        ids,
      ])
      return new Map(rows.map((row) => [row.id as string, row.state as string]))
    },
    async query(sql, values = []) {
      return (await database.query(sql, values as unknown[])).rows
    },
  }
  await Promise.all([
    ...Array.from({ length: options.apis ?? 1 }, () => fleet.startApi()),
    ...Array.from({ length: options.workers ?? 1 }, () => fleet.startWorker()),
  ])
  // The first API makes the key in the background.
  await eventually(async () => (await fleet.query('SELECT 1 FROM api_key')).length > 0)
  return fleet
}

/** A recipient nobody else uses. */
export function freshPhone(): string {
  return `+8613${randomInt(5, 10)}${String(randomInt(1e8)).padStart(8, '0')}`
}

export interface Ledger {
  /** Ids of every 202, in order. */
  readonly accepted: string[]
  /** Every other answer, by status; connections that broke count as 0. */
  readonly others: Map<number, number>
}

/** Sends captchas to fresh numbers at a steady rate, whatever the answers are. */
export async function sendAtRate(
  fleet: Fleet,
  perSecond: number,
  seconds: number,
): Promise<Ledger> {
  const ledger: Ledger = { accepted: [], others: new Map() }
  const count = (status: number) => {
    ledger.others.set(status, (ledger.others.get(status) ?? 0) + 1)
  }
  const startMs = performance.now()
  const under: Promise<void>[] = []
  for (let sent = 0; sent < perSecond * seconds; ) {
    const due = Math.min(perSecond * seconds, ((performance.now() - startMs) / 1_000) * perSecond)
    for (; sent < due; sent++) {
      under.push(
        fleet
          .post('/v1/captchas', { channel: 'sms', to: freshPhone() })
          .then(({ status, body }) => {
            if (status === 202) ledger.accepted.push(body.id as string)
            else count(status)
          })
          .catch(() => count(0)),
      )
    }
    await sleep(5)
  }
  await Promise.all(under)
  return ledger
}

export const finalStates: readonly string[] = ['sent', 'delivered', 'failed', 'expired']

/** Waits until every accepted notice is final and returns how many ended in each state. */
export async function settle(
  fleet: Fleet,
  accepted: readonly string[],
  withinMs = 60_000,
): Promise<Record<string, number>> {
  return eventually(
    async () => {
      const states = await fleet.states(accepted)
      const open = accepted.filter((id) => !finalStates.includes(states.get(id) ?? ''))
      if (open.length > 0) {
        throw new Error(
          `${open.length} of ${accepted.length} are not final, e.g. ${open[0]}: ${states.get(open[0] as string)}`,
        )
      }
      const counts: Record<string, number> = {}
      for (const state of states.values()) counts[state] = (counts[state] ?? 0) + 1
      return counts
    },
    { withinMs, everyMs: 200 },
  )
}

/** Notices that reached the far end more than once. */
export function doubled(fleet: Fleet): number {
  return [...fleet.farEnd.calls.values()].filter((calls) => calls > 1).length
}

function policyFileOf(farEnd: FarEnd, policies: string): string {
  return `
policies:${policies}
templates: ${JSON.stringify(join(import.meta.dirname, '../../templates'))}
providers:
  far: { kind: webhook, url: "${farEnd.url}", secret: "a secret of the far end" }
routes:
  email: [{ use: [far] }]
  sms: [{ use: [far] }]
`
}

async function startFarEnd(): Promise<FarEnd> {
  const calls = new Map<string, number>()
  const server = createServer((incoming, response) => {
    const id = String(incoming.headers['webhook-id'])
    incoming.resume()
    incoming.once('end', () => {
      calls.set(id, (calls.get(id) ?? 0) + 1)
      if (farEnd.status === 0) return
      response.writeHead(farEnd.status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ id: `far-${id}` }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const farEnd: FarEnd = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/send`,
    calls,
    status: 200,
  }
  releaseLater(
    () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  return farEnd
}

function post(agent: Agent, url: string, body: unknown): Promise<Reply> {
  const startMs = performance.now()
  const text = JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      agent,
      method: 'POST',
      headers: {
        authorization: `Bearer ${fleetKey}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
      },
    })
    outgoing.setTimeout(10_000, () => outgoing.destroy(new Error('no answer in 10 s')))
    outgoing.once('error', reject)
    outgoing.once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () => {
        const parsed = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {}
        resolve({
          status: response.statusCode ?? 0,
          body: parsed,
          tookMs: performance.now() - startMs,
        })
      })
    })
    outgoing.end(text)
  })
}
