import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { inject } from 'vitest'
import { parse, stringify } from 'yaml'
import { type Roles, start } from '../../src/main/compose.ts'
import { createPostern } from '../../src/main/create-postern.ts'
import { loadConfig } from '../../src/main/load-config.ts'
import type { OutboxItem } from '../../src/providers/sandbox/outbox.ts'
import { type TestDatabase, testDatabase } from './database.ts'
import { type TestRedis, testRedis } from './redis.ts'
import { releaseLater } from './release.ts'
import { eventually } from './wait.ts'

export interface PosternOptions {
  /** Both by default. */
  readonly roles?: Roles
  /** Sections that replace sections of the default policy file. */
  readonly policyFile?: Readonly<Record<string, unknown>>
  readonly env?: Readonly<Record<string, string>>
  /** Servers that it shares with another one. By default it has separate ones. */
  readonly on?: Pick<Postern, 'redis' | 'database'>
  /**
   * The number of repeats after a 503, which changes nothing: a busy machine's servers may answer late. By default 5, or none
   * for servers of the test, which may be away.
   */
  readonly patience?: number
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers that the contract tests have checked
  readonly body: any
}

export interface RequestOptions {
  /** Null sends none. */
  readonly key?: string | null
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Postern {
  readonly url: string
  readonly adminUrl: string
  readonly key: string
  readonly redis: TestRedis
  readonly database: TestDatabase
  /** Sends `body` as JSON. A string or bytes are sent unchanged. */
  post(path: string, body: unknown, options?: RequestOptions): Promise<Reply>
  get(path: string, options?: RequestOptions): Promise<Reply>
  /** The messages that the sandbox has delivered, newest first. */
  messages(to?: string): Promise<OutboxItem[]>
  /** Waits for the newest message to a recipient, or for the message of a notice id. */
  messageFor(recipientOrNoticeId: string): Promise<OutboxItem>
  /** The code in it. */
  codeFor(recipientOrNoticeId: string): Promise<string>
  stop(): Promise<void>
}

/** Policies that refuse nothing, for tests with another subject. */
export const noLimits = { captcha: [], notice: [], check: [] }

type EnvOptions = Pick<PosternOptions, 'policyFile' | 'env'> & {
  readonly redis: Pick<TestRedis, 'url'>
  readonly database: Pick<TestDatabase, 'url'>
}

/** The settings for `startProcess`, which chooses the ports. */
export function processEnv(options: EnvOptions): Record<string, string> {
  const { PORT: _, ADMIN_PORT: __, ...env } = posternEnv(options)
  return env
}

/** Settings as a process reads them, with any free ports. */
export function posternEnv(options: EnvOptions): Record<string, string> {
  const folder = inject('runFolder')
  const configFile = join(folder, `policy-${randomBytes(6).toString('hex')}.yaml`)
  const defaults = parse(readFileSync(new URL('../../postern.yaml', import.meta.url), 'utf8'))
  const templates = fileURLToPath(new URL('../../templates', import.meta.url))
  writeFileSync(configFile, stringify({ ...defaults, templates, ...options.policyFile }))
  return {
    HOST: '127.0.0.1',
    PORT: '0',
    ADMIN_PORT: '0',
    ...inject('serverEnv'),
    DATABASE_URL: options.database.url,
    REDIS_URL: options.redis.url,
    POSTERN_CONFIG: configFile,
    SECRET: 'a secret of at least thirty-two bytes',
    BOOTSTRAP_SECRET_KEY: `psk_test_${randomBytes(12).toString('hex')}`,
    LOG_LEVEL: 'silent',
    ...options.env,
  }
}

/** The whole product in this process, on free ports, with separate servers and keys. */
export async function startPostern(options: PosternOptions = {}): Promise<Postern> {
  const { redis, database } = options.on ?? {
    redis: await testRedis(),
    database: await testDatabase(),
  }
  const env = posternEnv({ ...options, redis, database })
  const patience = options.patience ?? (options.on ? 0 : 5)
  const key = env.BOOTSTRAP_SECRET_KEY as string
  const mountAt = inject('mountAt')
  if (mountAt) {
    const { url, adminUrl, stop } = await startInHost(mountAt, env, redis.prefix, options.roles)
    if (env.DATABASE_URL === database.url) await eventually(() => isKeyMade(database))
    return { url, adminUrl, key, redis, database, stop, ...clientOf(url, key, patience) }
  }
  const loaded = await loadConfig(env)
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  const running = await start(loaded.config, options.roles ?? { api: true, worker: true }, {
    keyPrefix: redis.prefix,
    quietMs: 0,
  })
  releaseLater(() => running.close())
  // A start that PostgreSQL did not answer in time makes the key later.
  if (running.addresses.api && env.DATABASE_URL === database.url) {
    await eventually(() => isKeyMade(database))
  }
  return {
    url: running.addresses.api ?? '',
    adminUrl: running.addresses.admin as string,
    key,
    redis,
    database,
    stop: () => running.close(),
    ...clientOf(running.addresses.api ?? '', key, patience),
  }
}

async function isKeyMade({ pool }: TestDatabase): Promise<boolean> {
  // A test with a server of its own has no pool here, and no key that others made.
  if (!pool) return true
  const { rows } = await pool.query("SELECT FROM api_key WHERE name = 'bootstrap'")
  return rows.length > 0
}

/** The same, mounted in a foreign Express app. No request for a path of Postern may reach the rest of that app. */
export async function startInHost(
  mountAt: string,
  env: Readonly<Record<string, string>>,
  keyPrefix: string,
  roles: Roles = { api: true, worker: true },
  hostExpress: typeof express = express,
) {
  const postern = await createPostern({ environment: env, policy: env.POSTERN_CONFIG, keyPrefix })
  releaseLater(() => postern.close())
  if (roles.worker) postern.startWorker()
  const app = hostExpress().set('trust proxy', Number(env.TRUST_PROXY_HOPS ?? 0))
  app.use(mountAt, postern.router)
  app.get('/metrics', async (_, response) => void response.send(await postern.metrics()))
  app.use((_, response) => void response.status(404).json({ of: 'the host' }))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await postern.close()
  }
  releaseLater(stop)
  const adminUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url: `${adminUrl}${mountAt}`, adminUrl, stop }
}

/** The calls of tests to any running API. */
export function clientOf(
  url: string,
  defaultKey: string,
  patience = 0,
): Pick<Postern, 'post' | 'get' | 'messages' | 'messageFor' | 'codeFor'> {
  async function call(
    path: string,
    init: RequestInit,
    options: RequestOptions,
    again = patience,
  ): Promise<Reply> {
    const { key = defaultKey, method, headers } = options
    const response = await fetch(`${url}${path}`, {
      ...init,
      ...(method ? { method } : {}),
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      signal: AbortSignal.timeout(15_000),
    })
    const text = await response.text()
    if (response.status === 503 && again > 0) {
      await sleep(200)
      return call(path, init, options, again - 1)
    }
    const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '')
    return {
      status: response.status,
      headers: response.headers,
      body: isJson ? JSON.parse(text) : text,
    }
  }

  async function messages(to?: string): Promise<OutboxItem[]> {
    const query = to === undefined ? '' : `&to=${encodeURIComponent(to)}`
    const { body } = await call(`/sandbox/messages?limit=1000${query}`, {}, { key: null })
    return body as OutboxItem[]
  }

  const messageFor = (wanted: string) =>
    eventually(async () => {
      const all = await messages()
      return all.find(({ to, noticeId }) => to === wanted || noticeId === wanted) ?? false
    })

  return {
    post: (path, body, options = {}) => {
      const isRaw = typeof body === 'string' || body instanceof Uint8Array || body === undefined
      const sent = isRaw ? body : JSON.stringify(body)
      return call(path, { method: 'POST', body: sent as RequestInit['body'] }, options)
    },
    get: (path, options = {}) => call(path, {}, options),
    messages,
    messageFor,
    codeFor: async (wanted) =>
      (await messageFor(wanted)).text.match(/(?<!\d)\d{4,10}(?!\d)/)?.[0] ?? 'no code',
  }
}
