import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Cluster, Redis } from 'ioredis'

/** A connection on which scripts can run: one server or a cluster. */
export type RedisClient = Redis | Cluster

/** A Lua script of `lua/`, ready to run by its hash. */
export interface Script {
  readonly name: string
  readonly sha: string
  readonly source: string
  /** Runs by hash; a server that has lost its scripts (restart, SCRIPT FLUSH) is sent the source. */
  run(
    client: RedisClient,
    keys: readonly string[],
    args: readonly (string | number | Buffer)[],
  ): Promise<unknown>
}

/** Loads `lua/<fileName>.lua` once, at start; a missing file stops the process there. */
export function loadScript(fileName: string): Script {
  const source = readFileSync(new URL(`../../lua/${fileName}.lua`, import.meta.url), 'utf8')
  const sha = createHash('sha1').update(source).digest('hex')
  return {
    name: fileName,
    sha,
    source,
    async run(client, keys, args) {
      try {
        return await client.evalsha(sha, keys.length, ...keys, ...args)
      } catch (error) {
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
        return await client.eval(source, keys.length, ...keys, ...args)
      }
    },
  }
}
