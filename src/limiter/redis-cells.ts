/** Reads cells as `acquire-N.lua` writes them. */
import type { RedisClient, Script } from '../redis/script.ts'
import type { CellStore } from './cells.ts'

/** The values of some keys of one slot, and Redis' time. A key of another type counts as empty. */
export async function readCells(
  redis: RedisClient,
  script: Script,
  keys: readonly string[],
): Promise<{ nowMs: number; stores: CellStore[] }> {
  const run = async () => {
    try {
      return await redis.callBuffer('EVALSHA', script.sha, keys.length, ...keys)
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
      return await redis.callBuffer('EVAL', script.source, keys.length, ...keys)
    }
  }
  const [seconds, microseconds, values] = (await run()) as [Buffer, Buffer, (Buffer | null)[]]
  const nowMs = Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
  return { nowMs, stores: values.map((value) => decodeCells(value, nowMs)) }
}

/** One subject's cells; the length of a value tells its form. */
export function decodeCells(value: Buffer | null, nowMs: number): CellStore {
  const bytes = value ?? Buffer.alloc(1)
  const wide = bytes.length % 5 === 4
  const [head, size] = wide ? [4, 10] : [1, 5]
  const stride = Math.floor((bytes.length - head) / size)
  const times = wide ? new Float64Array(stride) : new Uint32Array(stride)
  const counts = wide ? new Uint32Array(stride + 1) : new Uint8Array(stride + 1)
  counts[0] = bytes.readUIntBE(0, head)
  for (let cell = 0; cell < stride; cell++) {
    const at = head + cell * size
    times[cell] = bytes.readUIntBE(at, size - head)
    counts[cell + 1] = bytes.readUIntBE(at + size - head, head)
  }
  const newest = times[stride - 1] ?? 0
  const newestAt = Float64Array.of(wide ? newest : nowMs - ((nowMs - newest) | 0))
  return { wide, stride, times, counts, lengths: Uint8Array.of(stride), newestAt }
}
