import { loadScript, type RedisClient } from '../base/redis-script.ts'

export interface Line {
  key: string
  /** Time of the line by `performance.now()`. */
  atMs: number
  text: string
}

const script = loadScript('record-N')

/**
 * Adds lines to lists that are bounded in number and time. In a cluster, each list needs its own call. Returns the number
 * of lines of the last list, and the age of its oldest line in ms.
 */
export async function append(
  redis: RedisClient,
  lines: readonly Line[],
  { maxLines, livesMs }: { maxLines: number; livesMs: number },
): Promise<[length: number, reachesMs: number]> {
  if (lines.length === 0) return [0, 0]
  const nowMs = performance.now()
  const calls = redis.isCluster ? Map.groupBy(lines, ({ key }) => key).values() : [lines]
  const answers = Array.from(calls, (call) => {
    const keys = call.map(({ key }) => key)
    const args = call.flatMap(({ atMs, text }) => [Math.round(nowMs - atMs), text])
    return script.run(redis, keys, [maxLines, livesMs, ...args])
  })
  return (await Promise.all(answers)).at(-1) as [number, number]
}
