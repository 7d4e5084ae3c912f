/**
 * What is good once (an answer to a challenge, a pass): taken in Redis for one request, and given back when that request
 * came to nothing.
 */
import { loadScript, type RedisClient } from './redis-script.ts'
import { Unavailable } from './unavailable.ts'
import { createUntilAnswered } from './until-answered.ts'

const takeScript = loadScript('take-answer-1')
const returnScript = loadScript('return-answer-1')
const maxUnanswered = 10_000

/** `maxAgeMs`: nothing is good for longer. */
export function createOnce(redis: RedisClient, maxAgeMs: number) {
  const unanswered = createUntilAnswered({ maxAgeMs, maxEntries: maxUnanswered })

  return {
    /**
     * For how long it could be given again: `aliveMs`. 1: nobody had it before; 2: it is known to be right, and was given
     * back; 0: another request has it. Throws Unavailable; then it is given back as soon as Redis answers.
     */
    async take(key: string, requestId: string, aliveMs: number): Promise<number> {
      try {
        return (await takeScript.run(redis, [key], [requestId, Math.ceil(aliveMs)])) as number
      } catch (error) {
        const undo = () => returnScript.run(redis, [key], [requestId, 0])
        undo().catch(() => {})
        // It may still be on its way there.
        unanswered.add(requestId, undo)
        throw new Unavailable('redis', error)
      }
    },

    /** Now, or when Redis answers again. `isRight`: what was taken has turned out right. */
    giveBack(key: string, requestId: string, isRight: boolean): void {
      const run = () => returnScript.run(redis, [key], [requestId, isRight ? 1 : 0])
      run().catch(() => unanswered.add(requestId, run))
    },

    close: unanswered.close,
  }
}
