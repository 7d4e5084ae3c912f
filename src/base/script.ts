/**
 * Types of scripts and of the connections that run them. They name no type of ioredis or of Node, because `postern-limiter`
 * is also used without those.
 */

type Argument = string | number | Uint8Array
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

/** The part of a connection that runs scripts whose answers are text. */
interface TextClient {
  evalsha(sha: string, keys: number, ...args: Argument[]): Promise<unknown>
  eval(source: string, keys: number, ...args: Argument[]): Promise<unknown>
}

/** A Lua script, ready to run by its hash. */
export interface Script {
  readonly name: string
  readonly sha: string
  readonly source: string
  /** Runs by hash. A server that has lost its scripts (restart, SCRIPT FLUSH) gets the source. */
  run(client: TextClient, keys: readonly string[], args: Arguments): Promise<unknown>
  /**
   * Like `run`, but strings in the answer are Buffers. The source is only sent while `isWanted`. Otherwise a script could
   * run after later calls of a caller that no longer waits for it.
   */
  runForBytes(
    client: ByteClient,
    keys: readonly string[],
    args: Arguments,
    isWanted: () => boolean,
  ): Promise<unknown>
}
