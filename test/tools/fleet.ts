import { randomBytes, randomInt } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import pg from 'pg'
import { inject } from 'vitest'
import { stringify } from 'yaml'
import { migrate } from '../../src/storage/migrate.ts'
import { type AnswerDropper, startAnswerDropper } from './answer-dropper.ts'
import { type FarEnd, startFarEnd } from './far-end.ts'
import { type OwnServer, ownPostgres, ownRedis } from './own-servers.ts'
import { type PosternProcess, type StartOptions, startProcess } from './processes.ts'
import { closeLater, releaseLater } from './release.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'
import { eventually } from './wait.ts'

/**
 * The product as it is deployed, for tests that break it: API and worker processes over a separate Redis and
 * PostgreSQL. They send through the webhook provider to a far end that counts.
 */
export interface Fleet {
  readonly redis: OwnServer
  /** The servers that faults of Redis break: the plain one, or the masters of a cluster. */
  readonly redisMasters: readonly OwnServer[]
  readonly postgres: OwnServer
  /** The network between the processes and PostgreSQL, with `proxied`. */
  readonly network?: TcpProxy
  /** The statements whose answers were lost, with `losesAnswers`. */
  readonly answers?: AnswerDropper
  readonly apis: PosternProcess[]
  readonly workers: PosternProcess[]
  /** Every process of the fleet, including ended ones. */
  readonly all: readonly PosternProcess[]
  readonly farEnd: FarEnd
  startApi(options?: StartOptions): Promise<PosternProcess>
  startWorker(options?: StartOptions): Promise<PosternProcess>
  /** One request to an API process. A random running one if none is named. */
  post(path: string, body: unknown, api?: PosternProcess): Promise<Reply>
  /** A captcha by SMS to this number. */
  send(to: string, api?: PosternProcess): Promise<Reply>
  query<Row = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<Row[]>
}

export interface Reply {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers that the contract tests have checked
  readonly body: any
  readonly tookMs: number
}

type Sections = Readonly<Record<string, unknown>>

export interface FleetOptions {
  readonly apis?: number
  readonly workers?: number
  readonly redisFlags?: readonly string[]
  /** The address of another Redis than one plain server. */
  readonly redisUrl?: string
  /** The masters of the Redis at `redisUrl`. */
  readonly redisMasters?: readonly OwnServer[]
  /** Puts a TCP proxy before PostgreSQL. */
  readonly proxied?: boolean
  readonly postgresFlags?: readonly string[]
  /** The size of the disk of PostgreSQL, which root can mount. */
  readonly postgresDiskMb?: number
  /** Puts a network before PostgreSQL that loses the answer of each statement once. */
  readonly losesAnswers?: boolean
  /** Sections of the policy file that replace those below. */
  readonly policyFile?: Sections | ((farEndUrl: string) => Sections)
  readonly env?: Readonly<Record<string, string>>
}

/** The secret of the webhook provider, with which the far end signs its receipts. */
export const farEndSecret = 'a secret of the far end'

export const fleetKey = 'psk_fleet_0123456789abcdef'

/** No limits except for the recipient. */
const policies = {
  captcha: [
    { name: 'recipient', key: '{channel}:{to}', sliding: ['1 per 60s', '5 per 1h', '10 per 24h'] },
  ],
  notice: [],
  check: [
    { name: 'guesses', key: '{channel}:{to}', lockout: { limit: 3, window: '5m', lock: '15m' } },
  ],
}

export async function startFleet(options: FleetOptions = {}): Promise<Fleet> {
  const [redis, postgres, farEnd] = await Promise.all([
    options.redisUrl ? unusedServer : ownRedis(options.redisFlags),
    ownPostgres(options.postgresFlags, options.postgresDiskMb),
    startFarEnd(),
  ])
  await migrate(postgres.url)
  const network = options.proxied ? await startTcpProxy(postgres.port) : undefined
  const answers = options.losesAnswers ? await startAnswerDropper(postgres.port) : undefined
  const databaseUrl = new URL(postgres.url)
  databaseUrl.port = String((network ?? answers ?? postgres).port)
  const policyFile = join(inject('runFolder'), `fleet-${randomBytes(6).toString('hex')}.yaml`)
  const file = {
    policies,
    templates: join(import.meta.dirname, '../../templates'),
    providers: { far: { kind: 'webhook', url: farEnd.url, secret: farEndSecret } },
    routes: { email: [{ use: ['far'] }], sms: [{ use: ['far'] }] },
    ...(typeof options.policyFile === 'function'
      ? options.policyFile(farEnd.url)
      : options.policyFile),
  }
  await writeFile(policyFile, stringify(file))
  const env = {
    DATABASE_URL: databaseUrl.href,
    REDIS_URL: options.redisUrl ?? redis.url,
    SECRET: 'a secret of the fault tests, 32 bytes or more',
    BOOTSTRAP_SECRET_KEY: fleetKey,
    POSTERN_CONFIG: policyFile,
    LOG_LEVEL: 'warn',
    ...options.env,
  }
  const agent = closeLater(new Agent({ keepAlive: true, maxSockets: 512 }), 'destroy')
  const database = new pg.Pool({ connectionString: postgres.url, max: 2 })
  database.on('error', () => {})
  releaseLater(() => database.end())
  await database.query(recordFinalMoves)

  const apis: PosternProcess[] = []
  const workers: PosternProcess[] = []
  const all: PosternProcess[] = []
  const startOne = async (
    kind: 'api' | 'worker',
    started: PosternProcess[],
    more: StartOptions = {},
  ) => {
    const process = await startProcess(kind, { ...more, env: { ...env, ...more.env } })
    started.push(process)
    all.push(process)
    return process
  }
  const fleet: Fleet = {
    redis,
    redisMasters: options.redisMasters ?? [redis],
    postgres,
    ...(network ? { network } : {}),
    ...(answers ? { answers } : {}),
    apis,
    workers,
    all,
    farEnd,
    startApi: (more) => startOne('api', apis, more),
    startWorker: (more) => startOne('worker', workers, more),
    async post(path, body, api) {
      const alive = apis.filter((each) => !each.hasExited())
      const target = api ?? alive[randomInt(Math.max(1, alive.length))]
      if (!target) throw new Error('no API process is up')
      return post(agent, target.url + path, body)
    },
    send: (to, api) => fleet.post('/v1/captchas', { channel: 'sms', to }, api),
    async query(sql, values = []) {
      return (await database.query(sql, values as unknown[])).rows
    },
  }
  await Promise.all([
    ...Array.from({ length: options.apis ?? 1 }, () => fleet.startApi()),
    ...Array.from({ length: options.workers ?? 1 }, () => fleet.startWorker()),
  ])
  if (apis.length > 0) {
    // The first API makes the key in the background.
    await eventually(async () => (await fleet.query('SELECT 1 FROM api_key')).length > 0)
  }
  return fleet
}

/** Every change to a final state, so that a second one for the same notice would be seen. */
const recordFinalMoves = `
  CREATE TABLE final_move (notice_id uuid NOT NULL, state text NOT NULL);
  CREATE FUNCTION record_final_move() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO final_move VALUES (NEW.id, NEW.state); RETURN NULL; END $$;
  CREATE TRIGGER record_final_move AFTER UPDATE ON notice FOR EACH ROW
    WHEN (NEW.state IN ('sent', 'failed', 'expired') AND OLD.state IN ('pending', 'sending'))
    EXECUTE FUNCTION record_final_move();`

const unusedServer = new Proxy({} as OwnServer, {
  get(_, name) {
    // `await` reads `then` of any value, and this is not a promise.
    if (name === 'then') return undefined
    throw new Error('this fleet uses another Redis than one plain server')
  },
})

const mobiles = 500_000_000
let phones = randomInt(mobiles)

/** A recipient that no other test uses. With random ones, a long run would meet the same one twice. */
export function freshPhone(): string {
  phones = (phones + 1) % mobiles
  return `+8613${mobiles + phones}`
}

/** One path of a process' admin port. The connection is not kept. */
export function admin(process: PosternProcess | undefined, path: string): Promise<Response> {
  return fetch(`${process?.adminUrl}${path}`, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(5_000),
  })
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
