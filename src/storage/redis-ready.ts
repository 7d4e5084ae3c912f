import { Cluster, type Redis } from 'ioredis'
import { loadScript, type RedisClient } from '../base/redis-script.ts'
import { connectionFailure } from './redis.ts'

const proveWrite = loadScript('prove-write-1')
const proofTtlMs = 10_000
/** To find a key in a slot of a cluster node, at most this number of keys is tried. Any cluster needs far fewer. */
const maxKeysTried = 500
/** For each cluster node, the number of a key that the node has. */
const ownKeys = new WeakMap<Redis, number>()

export interface RedisReadiness {
  /** Why no send can succeed now; empty if Redis works. */
  reasons: string[]
  /** Facts that an operator should know although sends succeed. */
  warnings: string[]
}

/**
 * Checks Redis, or every master of a cluster, by a write like a send's. Only a write shows full memory, a replica or a
 * missing right. An eviction policy other than `noeviction` is a reason too: when memory is short, Redis then silently
 * drops queued jobs and counts (measured: 8,090 of 20,000 jobs). Never throws.
 */
export async function lookAtRedis(client: RedisClient, keyPrefix: string): Promise<RedisReadiness> {
  const masters = client instanceof Cluster ? client.nodes('master') : [client]
  const found = await Promise.all(masters.map((master) => lookAtServer(master, keyPrefix)))
  const reasons = new Set(found.flatMap(({ reasons }) => reasons))
  if (masters.length === 0) reasons.add(outOfReach)
  if (reasons.has(outOfReach)) {
    // The command only knows that there is no connection.
    const failure = await connectionFailure(client)
    const why = failure && whyNoConnection(failure)
    if (why && reasons.delete(outOfReach)) reasons.add(why)
  }
  return {
    reasons: [...reasons],
    warnings: [...new Set(found.flatMap(({ warnings }) => warnings))],
  }
}

async function lookAtServer(server: Redis, keyPrefix: string): Promise<RedisReadiness> {
  const [info, written] = await Promise.allSettled([
    server.info('memory', 'replication', 'persistence'),
    writeTo(server, keyPrefix),
  ])
  if (info.status === 'rejected') return { reasons: [reasonOf(info.reason)], warnings: [] }
  const fact = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info.value)?.[1]
  const policy = fact('maxmemory_policy')
  const reasons: string[] = []
  if (policy !== 'noeviction') {
    reasons.push(
      `redis has maxmemory-policy ${policy ?? 'unknown'}; set it to noeviction, or messages are lost`,
    )
  }
  if (written.status === 'rejected') reasons.push(reasonOf(written.reason))
  // Writes to a writable replica are lost.
  else if (fact('role') === 'slave') reasons.push(isReplica)
  const keepsNothing = fact('aof_enabled') === '0' && fact('connected_slaves') === '0'
  return {
    reasons,
    warnings: keepsNothing
      ? [
          'redis has appendonly no and no replica; a restart loses codes, limits and the queue since the last snapshot (notices are queued again), so set appendonly yes',
        ]
      : [],
  }
}

/** On a cluster node, uses a key of that node's slots. */
async function writeTo(server: Redis, keyPrefix: string): Promise<void> {
  const first = ownKeys.get(server) ?? 0
  for (let tried = 0; tried < maxKeysTried; tried++) {
    const n = (first + tried) % maxKeysTried
    try {
      await proveWrite.run(server, [`${keyPrefix}ready:{${n}}`], [proofTtlMs])
      ownKeys.set(server, n)
      return
    } catch (error) {
      if (!(error instanceof Error && /^(MOVED|ASK) /.test(error.message))) throw error
    }
  }
  // A node without slots is not tested.
}

const outOfReach = 'redis is out of reach'
const isReplica = 'redis is a replica; point REDIS_URL at its master'

const noAccess = 'redis refuses the password; check REDIS_URL'

const refusals: Readonly<Record<string, string>> = {
  OOM: 'redis is out of memory (maxmemory is reached), so it refuses to write',
  READONLY: isReplica,
  MISCONF: 'redis refuses to write because it could not save to disk',
  NOREPLICAS: 'redis refuses to write because it has too few replicas (min-replicas-to-write)',
  CLUSTERDOWN: 'redis reports that its cluster is down',
  MASTERDOWN: 'redis is a replica that has lost its master',
  LOADING: 'redis is still loading its data',
  NOPERM: 'redis user lacks a right; check its ACL',
  NOAUTH: noAccess,
  WRONGPASS: noAccess,
}

/** The reason in an error of a connection that could not be made; undefined if Redis is just away. */
function whyNoConnection({ message }: Error): string | undefined {
  const isOfSentinel = /sentinel/i.test(message)
  if (/certificate|altnames/i.test(message)) {
    return 'redis has a certificate that is not trusted; set CA_FILE'
  }
  // A server without TLS closes; another one gives an answer that OpenSSL can't read.
  if (/before secure TLS connection|wrong version number|packet length too long/i.test(message)) {
    return 'redis does not answer with TLS at this port, which REDIS_URL asks for (rediss)'
  }
  if (/\b(NOAUTH|WRONGPASS)\b|invalid (username-)?password/.test(message)) {
    return isOfSentinel
      ? 'redis sentinels refuse the password; check ?sentinelPassword= in REDIS_URL'
      : refusals.NOAUTH
  }
  if (/\bNOPERM\b/.test(message)) return refusals.NOPERM
  return undefined
}

/** Redis's errors begin with a code word; all other errors are about the connection. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return outOfReach
  // A missing right of a script gives ERR with one of these sentences.
  const [word = ''] = /ACL failure|executing the script can't/.test(error.message)
    ? ['NOPERM']
    : (/^[A-Z]+/.exec(error.message) ?? [])
  return refusals[word] ?? `redis refuses a command of a send (${word || 'unknown error'})`
}
