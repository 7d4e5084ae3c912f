/**
 * Postern inside another Express app: the router of the API, and a worker where one is wanted. It is what the
 * standalone processes are made of, without ports of its own.
 */
import '../base/supported-node.ts'
import { stringify } from 'yaml'
import type { PosternCalls } from '../http/in-process.ts'
import { createApiRouter } from './api-router.ts'
import { loadConfig } from './load-config.ts'
import { type Additions, createExtensions } from './plugins.ts'
import { defaultKeyPrefix, measureGauges, openShared } from './shared.ts'
import { startWorkerRole } from './worker-role.ts'

export interface PosternOptions extends Additions {
  /**
   * `DATABASE_URL`, `REDIS_URL`, `SECRET` and whatever else `.env.example` lists, `process.env` by default. Ports, host and
   * proxy hops are the host's: the caller's address is `req.ip` by the host's `trust proxy`.
   */
  environment?: Readonly<Record<string, string | undefined>>
  /** The policy file: its path, `./postern.yaml` by default, or what would stand in it. */
  policy?: string | Readonly<Record<string, unknown>>
  /** Before every key in Redis; `postern:` by default. */
  keyPrefix?: string
}

export interface Postern extends PosternCalls {
  /**
   * An `express.Router`, to be mounted anywhere. Paths that are not Postern's go on to the next handler; a body that
   * was parsed before is taken as it is.
   */
  readonly router: Awaited<ReturnType<typeof createApiRouter>>['router']
  /** Begins to carry messages in this process; a second call changes nothing. Throws after `close`. */
  startWorker(): void
  /** What Prometheus reads of this Postern, to be served where the host serves its own. */
  metrics(): Promise<string>
  /**
   * Answers new requests with 503, ends those under way, then closes every connection. The server is the host's: close it
   * too. A second call returns the same promise.
   */
  close(): Promise<void>
}

/** Resolves once the plugins are loaded, also while Redis or PostgreSQL is away. Throws an Error that lists every problem of the settings, or names the plugin that can not be used. */
export async function createPostern(options: PosternOptions = {}): Promise<Postern> {
  const { environment = process.env, policy = environment.POSTERN_CONFIG, keyPrefix } = options
  const extensions = createExtensions()
  await extensions.addOfHost(options)
  const loaded = await loadConfig(
    environment,
    typeof policy === 'object' ? { text: stringify(policy), path: 'policy' } : policy,
    extensions,
  )
  if (!loaded.ok) throw new Error(`Postern can not start:\n  ${loaded.problems.join('\n  ')}`)
  const shared = openShared(loaded.config, 'embedded', keyPrefix ?? defaultKeyPrefix)
  const { closers, metrics, stores } = shared
  let hasWorker = false
  let closing: Promise<void> | undefined
  try {
    const { router, underWay, calls } = await createApiRouter(shared)
    return {
      ...calls,
      router,
      startWorker() {
        if (closing)
          throw new Error('startWorker: this Postern is closed; call createPostern again')
        if (!hasWorker) startWorkerRole(shared)
        hasWorker = true
      },
      async metrics() {
        await measureGauges(metrics, stores)
        return metrics.registry.metrics()
      },
      close() {
        // Requests first: a worker's end may take seconds.
        closing ??= underWay.close().then(() => closers.close())
        return closing
      },
    }
  } catch (error) {
    await closers.close().catch(() => {})
    throw error
  }
}

export type { Receipt, ReceiptReader, ReceiptRequest } from '../base/receipt.ts'
export type { CallOutcome, PosternCalls } from '../http/in-process.ts'
export type { Message, Provider, SendResult, SentMessage } from '../providers/provider.ts'
export type { ProviderDeps, ProviderKind } from '../providers/provider-kind.ts'
export { migrate } from '../storage/migrate.ts'
export type { Plugin } from './plugins.ts'
