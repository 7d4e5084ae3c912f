/**
 * Postern inside another Express app: the router of the API and, if wanted, a worker. The standalone processes use the
 * same code and add ports.
 */
import '../base/supported-node.ts'
import { stringify } from 'yaml'
import type { PosternCalls } from '../http/in-process.ts'
import type { Additions } from '../http/plugins.ts'
import { createApiRouter } from './api-router.ts'
import { createExtensions, loadConfig } from './load-config.ts'
import { composeRequests } from './requests.ts'
import { defaultKeyPrefix, measure, openShared } from './shared.ts'
import { startWorkerRole } from './worker-role.ts'

export interface PosternOptions extends Additions {
  /**
   * `DATABASE_URL`, `REDIS_URL`, `SECRET` and the other variables of `.env.example`; `process.env` by default. The host app
   * decides about ports and proxy hops: the address of a caller is its `req.ip`, by its `trust proxy`.
   */
  environment?: Readonly<Record<string, string | undefined>>
  /** The path of the policy file, `./postern.yaml` by default, or its content. */
  policy?: string | Readonly<Record<string, unknown>>
  /** Prefix of every Redis key; `postern:` by default, as in processes of the `postern` command. */
  keyPrefix?: string
}

export interface Postern extends PosternCalls {
  /**
   * An `express.Router`, to be mounted anywhere. Paths that Postern does not have go on to the next handler. It accepts a
   * body that was parsed before.
   */
  readonly router: Awaited<ReturnType<typeof createApiRouter>>['router']
  /** Starts to send messages in this process; a second call changes nothing. Throws after `close`. */
  startWorker(): void
  /** Metrics of this Postern for Prometheus. The host app serves them together with its own. */
  metrics(): Promise<string>
  /**
   * Answers new requests with 503, finishes those under way, then closes every connection. It does not close the server
   * of the host. A second call returns the same promise.
   */
  close(): Promise<void>
}

const optionNames = ['environment', 'policy', 'keyPrefix', 'providerKinds', 'plugins']

/**
 * Resolves when the plugins are loaded and Redis is connected, or after 2 s if Redis does not answer. Throws an Error
 * that lists every problem of the settings, or names the plugin that cannot be used.
 */
export async function createPostern(options: PosternOptions = {}): Promise<Postern> {
  const unknown = Object.keys(options).find((name) => !optionNames.includes(name))
  if (unknown !== undefined) {
    const known = optionNames.join(', ')
    throw new Error(`createPostern has no option "${unknown}"; its options are ${known}`)
  }
  const { environment = process.env, policy = environment.POSTERN_CONFIG, keyPrefix } = options
  const extensions = createExtensions()
  await extensions.addOfHost(options)
  const loaded = await loadConfig(
    environment,
    typeof policy === 'object'
      ? { text: stringify(policy, { aliasDuplicateObjects: false }), path: 'policy' }
      : policy,
    extensions,
  )
  if (!loaded.ok) throw new Error(`Postern cannot start:\n  ${loaded.problems.join('\n  ')}`)
  const shared = openShared(loaded.config, 'embedded', keyPrefix ?? defaultKeyPrefix)
  const { closers, metrics } = shared
  let hasWorker = false
  let closing: Promise<void> | undefined
  try {
    const { router, underWay, calls } = await createApiRouter(shared, await composeRequests(shared))
    // A first call would find a connection that is still being made.
    await shared.servers.firstTries()
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
        await measure(shared, shared.servers.look)
        return metrics.registry.metrics()
      },
      close() {
        // Requests end first, because a worker may take seconds to end.
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
export type { CallOutcome } from '../http/call-outcome.ts'
export type { PosternCalls } from '../http/in-process.ts'
export type { Plugin } from '../http/plugins.ts'
export type { Message, Provider, SendResult, SentMessage } from '../providers/provider.ts'
export type { ProviderDeps, ProviderKind } from '../providers/provider-kind.ts'
export { migrate } from '../storage/migrate.ts'
