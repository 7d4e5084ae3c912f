import { once } from 'node:events'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { orLate, startCountdown } from '../base/deadline.ts'
import { type RedisAddress, readRedisAddress } from '../base/redis-address.ts'
import type { RedisClient } from '../base/redis-script.ts'
import { dropConnections, dropSilent, isOfReplica } from '../base/redis-trust.ts'

/**
 * The role of a connection decides its behaviour when Redis is away.
 *
 * - `limiter`: one script call per event-loop tick. Fails at once or within its deadline and never queues, because a
 *   caller waits and 503 is better than silence. The limiter's deadline is shorter than `commandMs`. No
 *   auto-pipelining, which halves script throughput and quadruples p99.
 * - `code`: the same, with a longer deadline, because a check without an answer may have used up the code.
 * - `command`: many small commands, one or two per request. The same, but with auto-pipelining: one write for all
 *   commands of a tick (a third of Redis' time per command).
 * - `producer`: adds jobs, many to a call. The producer sets the deadline of a call, because a time-out here would be
 *   one timer per job.
 * - `worker`: BullMQ's blocking reads. Waits for Redis without limit, as BullMQ requires.
 */
export type ConnectionRole = 'limiter' | 'code' | 'command' | 'producer' | 'worker'

const failFast: RedisOptions = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 2_000,
  // Time limit of the commands that ioredis sends on a new connection. Postern's commands end sooner, see
  // `limitCommands`.
  commandTimeout: 10_000,
}

/** The deadline of a command on a fail-fast connection, counted in time in which this process runs. */
const commandMs = 800

const roleOptions: Record<ConnectionRole, RedisOptions> = {
  limiter: failFast,
  code: failFast,
  command: { ...failFast, enableAutoPipelining: true },
  producer: { enableOfflineQueue: false, maxRetriesPerRequest: 1, connectTimeout: 2_000 },
  worker: { maxRetriesPerRequest: null, connectTimeout: 2_000 },
}

/** ioredis's default back-off costs 18 s after an outage of 20 s; this one costs a second at most. */
const retryStrategy = (attempt: number) => Math.min(attempt * 100, 1_000)

/** A connection is probed this often. A probe without an answer in time ends it. */
const probeEveryMs = 1_000
const probeAnswerMs = 1_000
/** If the address leads to a replica, reconnecting does not help, so it is not done for each command. */
const leaveEveryMs = 1_000

export type Party = ReturnType<typeof createParty>

/**
 * The connections of one process. When one of them finds that its server is a replica, all leave that server together.
 * Otherwise one part of a request would use the new master, and another part the old one.
 */
export function createParty() {
  const clients = new Set<RedisClient>()
  let leftAtMs = Number.NEGATIVE_INFINITY
  return {
    join(client: RedisClient): void {
      clients.add(client)
      client.once('end', () => clients.delete(client))
    },
    /** True if the connection with this error has to be made again. The others are made again too. */
    leaves(error: Error): boolean {
      if (!isOfReplica(error) || performance.now() - leftAtMs < leaveEveryMs) return false
      leftAtMs = performance.now()
      setImmediate(() => clients.forEach(dropConnections))
      return true
    },
  }
}

/** The latest errors of connections, since they were ready. */
const failures = new WeakMap<RedisClient, Error>()

/** The address that a client was opened for. */
const addresses = new WeakMap<RedisClient, RedisAddress>()
const tlsTryMs = 1_000

/**
 * Why a client has no connection, if that can be found out. ioredis drops the reason if TLS to a sentinel or to a node
 * of a cluster fails, so this function tries it once more.
 */
export async function connectionFailure(client: RedisClient): Promise<Error | undefined> {
  const address = addresses.get(client)
  if (address?.kind !== 'server' && address?.tls) {
    const { hosts, tls } = address
    const tried = await Promise.all(
      hosts.map((host) => orLate(tryTls({ ...host, ...tls }), tlsTryMs, () => undefined)),
    )
    const failure = tried.find(Boolean)
    if (failure) return failure
  }
  return failures.get(client)
}

/** Why TLS fails with a server that accepts connections. */
function tryTls(to: ConnectionOptions): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const socket = connectTls({ ...to, timeout: tlsTryMs })
    let isConnected = false
    socket.once('connect', () => {
      isConnected = true
    })
    socket.once('error', (error) => resolve(isConnected ? error : undefined))
    socket.once('close', () => resolve(undefined))
    socket.once('secureConnect', () => socket.destroy())
    socket.once('timeout', () => socket.destroy())
  })
}

/** Opens a connection to an address as in `readRedisAddress`. Never throws for an absent Redis; the commands throw. */
export function connectRedis(
  url: string,
  role: ConnectionRole,
  onError: (error: Error) => void,
  party = createParty(),
): RedisClient {
  const options = { ...roleOptions[role], retryStrategy, reconnectOnError: party.leaves }
  const address = readRedisAddress(url)
  const client = openClient(url, address, options)
  addresses.set(client, address)
  party.join(client)
  probeUntilEnd(client)
  if (role !== 'producer' && role !== 'worker') limitCommands(client)
  client.on('error', onError)
  const keep = (error: Error) => void failures.set(client, error)
  client.on('error', keep).on('node error', keep)
  client.on('ready', () => failures.delete(client))
  return client
}

function probeUntilEnd(client: RedisClient): void {
  let isProbing = false
  const timer = setInterval(async () => {
    if (isProbing) return
    isProbing = true
    await dropSilent(client, probeAnswerMs)
    isProbing = false
  }, probeEveryMs).unref()
  client.once('end', () => clearInterval(timer))
}

/**
 * Fails commands without an answer in time. ioredis's `commandTimeout` is not used: after a busy time of this process
 * it fails commands whose answers have arrived.
 */
function limitCommands(client: RedisClient): void {
  const kind: Cluster = Object.getPrototypeOf(client)
  const sendLimited: Cluster['sendCommand'] = (command, stream, node) => {
    const sent = kind.sendCommand.call(client, command, stream, node)
    const stop = startCountdown(commandMs, () => command.reject(new Error('Command timed out')))
    command.promise.then(stop, stop)
    return sent
  }
  client.sendCommand = sendLimited
}

function openClient(url: string, address: RedisAddress, options: RedisOptions): RedisClient {
  if (address.kind === 'server') return new Redis(url, options)
  const { hosts, credentials, tls, name, sentinelPassword } = address
  const secure = tls ? { tls } : {}
  if (address.kind === 'cluster') {
    const { retryStrategy: _, ...redisOptions } = options
    return new Cluster(hosts, {
      redisOptions: { ...redisOptions, ...credentials, ...secure },
      // Certificates are for names. ioredis would resolve the names, and compare the certificates with addresses.
      ...(tls ? { dnsLookup: (host: string, done: Looked) => done(null, host) } : {}),
      clusterRetryStrategy: retryStrategy,
      ...(options.enableOfflineQueue === false ? { clusterNodeRetryStrategy: reconnectOnce } : {}),
      enableOfflineQueue: options.enableOfflineQueue ?? true,
      slotsRefreshTimeout: 2_000,
      // When a node is away, each redirection costs a tenth of a second. Four are enough to follow a moved slot, and a
      // caller can wait that long.
      ...(options.enableOfflineQueue === false ? { maxRedirections: 4 } : {}),
    })
  }
  return new Redis({
    ...options,
    ...credentials,
    ...secure,
    ...(tls ? { sentinelTLS: tls, enableTLSForSentinelMode: true } : {}),
    ...(sentinelPassword ? { sentinelPassword } : {}),
    // A sentinel that accepts a connection and gives no answer would be awaited without limit.
    sentinelCommandTimeout: 2_000,
    sentinels: hosts,
    name,
    sentinelRetryStrategy: retryStrategy,
  })
}

type Looked = (error: null, address: string) => void

/**
 * Without a strategy for its nodes, a `Cluster` of ioredis sends a command again whose connection ended before the
 * answer, also with `maxRetriesPerRequest: 0`. That uses up right codes and counts attempts twice. If the new connection
 * fails, the node is removed, and found again by its slots.
 */
const reconnectOnce = (attempt: number) => (attempt === 1 ? 0 : null)

/** Resolves when a new connection is ready, or when its first try has failed or takes too long. */
export async function firstTry(client: RedisClient): Promise<void> {
  if (client.status === 'ready') return
  await once(client, 'ready', { signal: AbortSignal.timeout(2_000) }).catch(() => {})
}
