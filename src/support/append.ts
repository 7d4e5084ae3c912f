import { loadScript, type RedisClient } from '../base/redis-script.ts'

export interface Line {
  key: string
  /** By `performance.now()`. */
  atMs: number
  text: string
}

const script = loadScript('record-N')

/**
 * Adds lines to lists that are bounded in number and time. In a cluster every list is a call of its own. Returns how
 * many lines the last list has, and how many ms it reaches back.
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
