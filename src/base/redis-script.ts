import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Cluster, Redis } from 'ioredis'

/** A connection on which scripts can run: one server or a cluster. */
export type RedisClient = Redis | Cluster

type Argument = string | number | Buffer
type Arguments = readonly Argument[]

/**
 * The part of a connection that runs scripts. ioredis has `evalshaBuffer` and `evalBuffer`, but not in its types.
 * `callBuffer` loses the name of the command on a connection with auto-pipelining.
 */
export interface ByteClient {
  callBuffer(command: string, ...args: Argument[]): Promise<unknown>
  evalshaBuffer?(sha: string, keys: number, ...args: Argument[]): Promise<unknown>
  evalBuffer?(source: string, keys: number, ...args: Argument[]): Promise<unknown>
}

/** A Lua script, ready to run by its hash. */
export interface Script {
  readonly name: string
  readonly sha: string
  readonly source: string
  /** Runs by hash. A server that has lost its scripts (restart, SCRIPT FLUSH) gets the source. */
  run(client: RedisClient, keys: readonly string[], args: Arguments): Promise<unknown>
  /** Like `run`, but strings in the answer are Buffers. */
  runForBytes(client: ByteClient, keys: readonly string[], args: Arguments): Promise<unknown>
}

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
    async runForBytes(client, keys, args) {
      try {
        return await (client.evalshaBuffer?.(sha, keys.length, ...keys, ...args) ??
          client.callBuffer('EVALSHA', sha, keys.length, ...keys, ...args))
      } catch (error) {
        if (!isUnknownScript(error)) throw error
        return await (client.evalBuffer?.(source, keys.length, ...keys, ...args) ??
          client.callBuffer('EVAL', source, keys.length, ...keys, ...args))
      }
    },
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
