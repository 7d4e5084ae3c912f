/**
 * `npm run demo`, `postern demo`: the whole product on one machine. It starts a private PostgreSQL and Redis unless
 * DATABASE_URL and REDIS_URL name others, and applies migrations. The API with the demo page runs in this process, the
 * worker in another. All data is in `.postern/`, so a second start finds it. When all is ready, a clone builds the guide,
 * unless the guide exists or `--no-guide` is given.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import express from 'express'
import { createKeyStore } from '../access/key-store.ts'
import { createKeyToken } from '../access/key-token.ts'
import { createClosers } from '../base/closers.ts'
import { commandLine, isInstalled } from '../base/command-line.ts'
import { stopOnSignals } from '../base/stop-on-signals.ts'
import { loadEnvFile } from '../config/env-file.ts'
import { orUsage } from '../main/commands/stop.ts'
import type { DemoParts } from '../main/compose.ts'
import { migrate } from '../main/create-postern.ts'
import { readConfigOrExit, startOrExit } from '../main/run.ts'
import { createDecisionWatch, type DecisionWatch } from './decision-watch.ts'
import { loadDemoConfig } from './demo-config.ts'
import { createDemoPage } from './demo-page.ts'
import { createGuide, guidePath } from './guide.ts'
import { type GuideBuild, startGuideBuild } from './guide-build.ts'
import { startPrivatePostgres } from './private-postgres.ts'
import { startPrivateRedis } from './private-redis.ts'
import { makeFolder } from './private-server.ts'
import { findFreePort, readIfThere } from './server-process.ts'
import { startWorkerProcess } from './worker-process.ts'

const { values: options } = orUsage(`Usage: ${commandLine('demo', '[--no-guide]')}`, () =>
  parseArgs({ options: { 'no-guide': { type: 'boolean' } } }),
)
loadEnvFile()
const env: Record<string, string | undefined> = { ...process.env }
env.HOST ||= '127.0.0.1'
env.LOG_LEVEL ||= 'warn'
// A clone has the file in its folder. Elsewhere the demo uses the file of the package.
env.POSTERN_CONFIG ||= existsSync('postern.yaml')
  ? './postern.yaml'
  : fileURLToPath(new URL('../../postern.yaml', import.meta.url))
const dataFolder = resolve(env.POSTERN_DATA || './.postern')

const hasGuide = !isInstalled && !options['no-guide']
let guideBuild: GuideBuild | undefined

// A signal during the start must stop the servers that already run.
const servers = createClosers()
const endWhileStarting = () => {
  void servers.close().finally(() => process.exit(130))
}
const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
for (const signal of endings) process.on(signal, endWhileStarting)

try {
  keepSecrets()
  await startServers()
  await migrate(env.DATABASE_URL as string)
} catch (error) {
  await giveUp(error as Error)
}

const config = await readConfigOrExit(env, loadDemoConfig)
const workerAdminPort = await findFreePort()
const worker = startWorkerProcess({
  ...env,
  HOST: '127.0.0.1',
  ADMIN_PORT: String(workerAdminPort),
})
servers.onClose(() => worker.close())
// The demo is ready only when the worker is ready too.
await worker.ready.catch(giveUp)
const starting = startOrExit(config, { api: true, worker: false }, createDemoParts())
const end = stopOnSignals(
  starting.then(({ log, close }) => ({
    log,
    async close() {
      const [api] = await Promise.allSettled([close(), worker.close()])
      await servers.close()
      if (api.status === 'rejected') throw api.reason
      console.log('Stopped. The data stays in', dataFolder)
    },
  })),
)
for (const signal of endings) process.off(signal, endWhileStarting)
// A closed terminal ends the demo like Ctrl-C.
process.on('SIGHUP', () => end('SIGHUP', 0))
printWelcome((await starting).addresses)
if (hasGuide) {
  guideBuild = startGuideBuild((line) => console.error(line))
  servers.onClose(() => guideBuild?.stop())
}

/** The demo page, which receives all decisions of the limits, and the guide. */
function createDemoParts(): DemoParts {
  let watch: DecisionWatch | undefined
  return {
    createRouter(shared) {
      const { limiter, policies } = shared.limits
      watch = createDecisionWatch({ limiter, policies })
      const keys = createKeyStore(shared.servers.database)
      const page = createDemoPage({
        ...{ shared, worker, watch, secretKey: env.BOOTSTRAP_SECRET_KEY as string },
        adminPort: async () => new URL((await starting).addresses.admin ?? '').port,
        async keyFor(port) {
          const token = keptSecret(`page-key-${port}`, () => createKeyToken('publishable'))
          const origins = [`http://localhost:${port}`, `http://127.0.0.1:${port}`]
          const facts = { name: 'demo-page', app: 'default', kind: 'publishable', origins } as const
          await keys.insert(token, facts)
          return token
        },
      })
      // The value is also true before the build begins.
      const isBeingBuilt = () => hasGuide && (guideBuild?.isUnderWay() ?? true)
      return express.Router().use(page, createGuide({ isBeingBuilt }))
    },
    onDecided: (decided) => watch?.onDecided(decided),
  }
}

async function giveUp({ message }: Error): Promise<never> {
  await servers.close().catch(() => {})
  console.error(`The demo cannot start: ${message}`)
  process.exit(1)
}

async function startServers(): Promise<void> {
  const starting: Promise<unknown>[] = []
  if (!env.DATABASE_URL) {
    starting.push(
      startPrivatePostgres({ dataDir: join(dataFolder, 'postgres') }).then((server) => {
        servers.onClose(() => server.stop())
        env.DATABASE_URL = server.url
        // Other commands read this file, such as `npm run keys`.
        writeFileSync(join(dataFolder, 'database-url'), server.url, { mode: 0o600 })
      }),
    )
  }
  if (!env.REDIS_URL) {
    starting.push(
      startPrivateRedis({ dataDir: join(dataFolder, 'redis') }).then((server) => {
        servers.onClose(() => server.stop())
        env.REDIS_URL = server.url
      }),
    )
  }
  // All starts settle before a failure is reported, so that no server is left running.
  const failed = (await Promise.allSettled(starting)).find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
}

function keepSecrets(): void {
  try {
    makeFolder(dataFolder)
    env.SECRET ||= keptSecret('secret', () => randomBytes(32).toString('hex'))
    env.BOOTSTRAP_SECRET_KEY ||= keptSecret(
      'demo-key',
      () => `psk_demo_${randomBytes(12).toString('hex')}`,
    )
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Error(`${dataFolder} is not writable (${code}); set POSTERN_DATA to another folder`, {
      cause: error,
    })
  }
}

function keptSecret(name: string, make: () => string): string {
  const file = join(dataFolder, name)
  // Empty if the disk was full when the file was made.
  if (readIfThere(file) === '') writeFileSync(file, make(), { mode: 0o600 })
  return readFileSync(file, 'utf8')
}

function printWelcome(addresses: Readonly<Record<string, string>>): void {
  const { api, admin } = addresses
  const key = env.BOOTSTRAP_SECRET_KEY
  console.log(`
Postern is ready. Open it:  http://localhost:${new URL(api ?? '').port}/

  API       ${api}          (its description: ${api}/openapi.json)
${hasGuide ? `  Guide     ${api}${guidePath}\n` : ''}  Console   ${admin}/          (for support; its key is made below)
  Metrics   ${admin}/metrics          (the worker's: http://localhost:${workerAdminPort}/metrics)
  Messages  ${api}/sandbox/messages          (nothing leaves this machine)
  Data      ${dataFolder}
  Database  ${env.DATABASE_URL}
  API key   ${key}

Request a code:

  curl -s ${api}/v1/captchas \\
    -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"channel":"sms","to":"+8613800138000"}'

Read it:

  curl -s ${api}/sandbox/messages

Make a key that may stand in a page (docs/start.md has the rest):

  DATABASE_URL='${env.DATABASE_URL}' \\
    ${commandLine('keys', 'create --kind publishable --name page --app default --origin http://localhost:8080')}

Make a key for the console:

  DATABASE_URL='${env.DATABASE_URL}' ${commandLine('keys', 'create --kind operator --name you')}

Ctrl-C stops everything that was started.
`)
}
