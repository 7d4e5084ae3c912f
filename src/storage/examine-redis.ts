import { Cluster, type Redis } from 'ioredis'
import { about, type Finding } from '../base/finding.ts'
import { lookAtClock } from './examine-clock.ts'
import { connectRedis, firstTry, type Party } from './redis.ts'
import { lookAtRedis } from './redis-ready.ts'

const oldestVersion = 7
const nearlyFull = 0.8

/** A replica is examined, and not left. */
const staying: Party = { join() {}, leaves: () => false }

/** Reports if a send can succeed now, and reports settings that cause trouble later. */
export async function examineRedis(url: string, keyPrefix: string): Promise<Finding[]> {
  const { ok, warning, error } = about('redis')
  let failure = ''
  const onError = ({ code = '' }: NodeJS.ErrnoException) => {
    failure = code && `the connection fails with ${code}; `
  }
  const client = connectRedis(url, 'command', onError, staying)
  try {
    await firstTry(client)
    const { reasons, warnings } = await lookAtRedis(client, keyPrefix)
    const found = [
      ...reasons.map((reason) =>
        error(reason, `${failure}see "Ready or not" in docs/operations.md`),
      ),
      ...warnings.map((text) => warning(text, 'set appendonly yes, or add a replica')),
    ]
    const isAway =
      client.status !== 'ready' || reasons.some((reason) => reason.includes('out of reach'))
    if (isAway) return found
    if (reasons.length === 0) found.unshift(ok('writable master, evicts nothing'))
    const masters = client instanceof Cluster ? client.nodes('master') : [client]
    const ofServers = await Promise.all(masters.map(lookAtServer))
    return [...found, ...unique(ofServers.flat())]
  } finally {
    client.disconnect()
  }
}

async function lookAtServer(server: Redis): Promise<Finding[]> {
  const { ok, warning, error } = about('redis')
  const info = await server.info('server', 'memory')
  const facts = new Map(info.split('\r\n').map((line) => line.split(':', 2) as [string, string]))
  const fact = (name: string) => facts.get(name) ?? ''
  const version = fact('redis_version')
  const [used, max] = [Number(fact('used_memory')), Number(fact('maxmemory'))]
  const usage = max > 0 ? `${megabytes(used)} of ${megabytes(max)} MB used` : ''
  return [
    Number.parseInt(version, 10) >= oldestVersion
      ? ok(`version ${version}`)
      : error(`version ${version}`, `Postern needs ${oldestVersion} or later`),
    max === 0
      ? warning(
          'no maxmemory: Redis grows until the system kills it',
          'set maxmemory to two thirds of the memory of the machine',
        )
      : used < max * nearlyFull
        ? ok(usage)
        : warning(usage, 'raise maxmemory; when Redis is full, Postern sends nothing'),
    await lookAtClock('redis', async () => {
      const [seconds, micros] = (await server.time()) as [number, number]
      return Number(seconds) * 1_000 + Number(micros) / 1_000
    }),
  ]
}

const megabytes = (bytes: number) => Math.ceil(bytes / 1_048_576)

/** The masters of a cluster report mostly the same findings. */
function unique(findings: readonly Finding[]): Finding[] {
  return [...new Map(findings.map((finding) => [JSON.stringify(finding), finding])).values()]
}
