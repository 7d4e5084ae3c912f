import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Cluster, Redis } from 'ioredis'
import type { Script } from './script.ts'

/** A connection on which scripts can run: one server or a cluster. */
export type RedisClient = Redis | Cluster

/** Loads `lua/<name>.lua`, at start. A line `-- include <file>` is replaced by that file. Throws if one is missing. */
export function loadScript(name: string): Script {
  const source = readLua(`${name}.lua`)
  const complete = source.replaceAll(/^-- include (\S+)$/gm, (_, file: string) => readLua(file))
  return createScript(name, complete)
}

function readLua(file: string): string {
  return readFileSync(new URL(`../../lua/${file}`, import.meta.url), 'utf8')
}

export function createScript(name: string, source: string): Script {
  const sha = createHash('sha1').update(source).digest('hex')
  return {
    name,
    sha,
    source,
    async run(client, keys, args) {
      try {
        return await client.evalsha(sha, keys.length, ...keys, ...args)
      } catch (error) {
        if (!isUnknownScript(error)) throw error
        return await client.eval(source, keys.length, ...keys, ...args)
      }
    },
    async runForBytes(client, keys, args, isWanted) {
      try {
        return await (client.evalshaBuffer?.(sha, keys.length, ...keys, ...args) ??
          client.callBuffer('EVALSHA', sha, keys.length, ...keys, ...args))
      } catch (error) {
        if (!isUnknownScript(error) || !isWanted()) throw error
        return await (client.evalBuffer?.(source, keys.length, ...keys, ...args) ??
          client.callBuffer('EVAL', source, keys.length, ...keys, ...args))
      }
    },
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
