/** Things that are valid once: an answer to a challenge, a pass. A request that fails gives its thing back. */
import { loadScript, type RedisClient } from './redis-script.ts'
import { Unavailable } from './unavailable.ts'
import { createUntilAnswered } from './until-answered.ts'

const takeScript = loadScript('take-answer-1')
const returnScript = loadScript('return-answer-1')
const maxUnanswered = 10_000

/** `maxAgeMs`: the longest life of a thing. */
export function createOnce(redis: RedisClient, maxAgeMs: number) {
  const unanswered = createUntilAnswered({ maxAgeMs, maxEntries: maxUnanswered })

  return {
    /**
     * Takes a thing for one request. `aliveMs` is the time for which it is still good. Returns 1 for a first use, 2
     * for a thing that was found right and given back, 0 if another request has it. Throws Unavailable; then the thing
     * is given back as soon as Redis answers.
     */
    async take(key: string, requestId: string, aliveMs: number): Promise<number> {
      try {
        return (await takeScript.run(redis, [key], [requestId, Math.ceil(aliveMs)])) as number
      } catch (error) {
        const undo = () => returnScript.run(redis, [key], [requestId, 0])
        undo().catch(() => {})
        // The command may still reach Redis.
        unanswered.add(requestId, undo)
        throw new Unavailable('redis', error)
      }
    },

    /** Gives back at once, or as soon as Redis answers. `isRight`: the thing was found to be right. */
    giveBack(key: string, requestId: string, isRight: boolean): void {
      const run = () => returnScript.run(redis, [key], [requestId, isRight ? 1 : 0])
      run().catch(() => unanswered.add(requestId, run))
    },

    close: unanswered.close,
  }
}
