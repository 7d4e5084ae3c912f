/** Postern as API and worker, with a policy file as it is shipped. Pages call it with a publishable key. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Challenge, solveChallenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import pg from 'pg'
import { parse } from 'yaml'
import { createKeyToken } from '../../../src/access/key-token.ts'
import { migrate } from '../../../src/storage/migrate.ts'
import { repository } from '../../harness/bench.ts'
import { createClient } from '../client.ts'
import type { Adapter, Checked, Press, Sent, Service, World } from '../service.ts'

export const alertRules = join(repository, 'deploy/prometheus/alerts.yml')

/** In production a challenge is this many times harder. */
const easierBy = 100
/** The default of the policy file. */
export const productionTries = 3_000
const tries = productionTries / easierBy

export type PolicyFile = { recipients?: { countries?: string[] } } & Record<string, unknown>

export const readPolicy = (name: string): PolicyFile =>
  parse(readFileSync(join(repository, 'policies', `${name}.yaml`), 'utf8'))

/** Its messages go to the provider of the bench. */
export function routed(file: PolicyFile, providerUrl: string): PolicyFile {
  const bench = { kind: 'webhook', url: providerUrl, secret: 'a secret of the benchmark' }
  const route = [{ use: ['bench'] }]
  return {
    ...file,
    templates: join(repository, 'templates'),
    challenge: { kind: 'altcha', tries },
    providers: { bench },
    routes: { email: route, sms: route },
  }
}

export const posternWith = (name: string, file = readPolicy(name)): Adapter => ({
  name: `Postern, ${name}.yaml`,
  countries: file.recipients?.countries,
  start: (world) => startPostern(world, routed(file, world.providerUrl)),
})

async function startPostern(world: World, policyFile: object): Promise<Service> {
  await migrate(world.postgres.url)
  const database = new pg.Pool({ connectionString: world.postgres.url, max: 2 })
  // If a start fails, the servers end before this pool, and the failure is what to report.
  database.on('error', () => {})
  const key = createKeyToken('publishable')
  await database.query(
    `INSERT INTO api_key (id, app, name, kind, hash, created_at, origins)
     VALUES (gen_random_uuid(), 'shop', 'page', 'publishable', $1, now(), '{https://shop.example}')`,
    [createHash('sha256').update(key).digest()],
  )
  const env = { TRUST_PROXY_HOPS: '1' }
  const [api, worker] = await Promise.all([
    world.start('src/main/api.ts', { policyFile, env }),
    world.start('src/main/worker.ts', { policyFile, env }),
  ])
  const client = createClient(api.url, { authorization: `Bearer ${key}` })

  async function send({ ip, ...asked }: Press, challenge?: string): Promise<Sent> {
    const { status, answer } = await client.post('/v1/captchas', ip, { ...asked, challenge })
    if (status === 202) return { is: 'accepted' }
    if (answer.code === 'challenge_required')
      return { is: 'challenged', solve: async () => send({ ip, ...asked }, await solved(answer)) }
    return { is: 'refused', waitMs: answer.retryAfterMs }
  }

  async function check(typed: Press & { code: string }, challenge?: string): Promise<Checked> {
    const { ip, ...asked } = typed
    const { status, answer } = await client.post('/v1/captchas/check', ip, { ...asked, challenge })
    if (status === 200) return { is: 'passed', known: answer.known }
    if (answer.code === 'challenge_required')
      return { is: 'challenged', solve: async () => check(typed, await solved(answer)) }
    const results: Record<string, Checked> = {
      code_mismatch: { is: 'wrong' },
      code_gone: { is: 'gone' },
    }
    return results[answer.code] ?? { is: 'refused' }
  }

  return {
    processes: [api, worker],
    send: (press) => send(press),
    check: (typed) => check(typed),
    async isQuiet() {
      const open = "SELECT 1 FROM notice WHERE state IN ('pending', 'sending') LIMIT 1"
      return (await database.query(open)).rows.length === 0
    },
    watch: {
      rules: alertRules,
      metrics: () =>
        Promise.all(
          [api, worker].map(async ({ adminUrl }) => (await fetch(`${adminUrl}/metrics`)).text()),
        ),
    },
    async close() {
      await Promise.all([client.close(), database.end()])
    },
  }
}

export async function solved(answer: { challenge: { challenge: Challenge } }): Promise<string> {
  const { challenge } = answer.challenge
  const solution = await solveChallenge({ challenge, deriveKey })
  return Buffer.from(JSON.stringify({ challenge, solution })).toString('base64')
}
