/**
 * Codes in Redis: one key per (app, scene, channel, recipient), so a new code replaces the old one by
 * itself, with its time to live. The key's name is a keyed hash and the code a keyed digest: whoever
 * reads Redis learns neither. A code is compared in Redis, in one script with its counting; what comes
 * in one event-loop tick goes in one call.
 *
 * While `SECRET_PREVIOUS` is set a code may lie under either secret's name. A new one goes under the
 * current name and the previous name is emptied first, so an owner never has two valid codes.
 */
import { createBatcher } from '../base/batcher.ts'
import { Unavailable } from '../base/problems.ts'
import type { Secrets } from '../base/secrets.ts'
import { loadScript, type RedisClient } from '../redis/script.ts'

/** Whose code it is: a code for one of these never passes for another. */
export interface CodeOwner {
  app: string
  scene: string
  channel: 'sms' | 'email'
  to: string
}

export type GuessResult =
  | { result: 'passed'; noticeId: string }
  | { result: 'mismatch'; triesLeft: number }
  | { result: 'gone' }

export type CodeStore = ReturnType<typeof createCodeStore>

const rememberScript = loadScript('remember-codes-N')
const checkScript = loadScript('check-codes-N')
const forgetScript = loadScript('forget-code-1')

export function createCodeStore(
  redis: RedisClient,
  secrets: Secrets,
  options: { keyPrefix: string; ttlMs: number; triesPerCode: number },
) {
  const partsOf = (owner: CodeOwner) => [owner.app, owner.scene, owner.channel, owner.to]
  /** One key per secret in use, the current one's first. */
  const keysOf = (owner: CodeOwner) =>
    secrets.subjectHashes(partsOf(owner)).map((hash) => `${options.keyPrefix}code:${hash}`)
  const digestsOf = (owner: CodeOwner, code: string) =>
    secrets.codeDigests([...partsOf(owner), code])

  // In a cluster the keys of one call must lie together, which those of different owners do not.
  const batching = redis.isCluster
    ? { maxItems: 1, maxConcurrent: 256 }
    : { maxItems: 128, maxConcurrent: 4 }

  const remember = createBatcher<{ key: string; value: string }, void>({
    ...batching,
    async run(codes) {
      const keys = codes.map(({ key }) => key)
      const values = codes.map(({ value }) => value)
      await reach(() => rememberScript.run(redis, keys, [options.ttlMs, ...values]))
      return codes.map(() => undefined)
    },
  })

  const check = createBatcher<{ key: string; args: readonly string[] }, string | number>({
    ...batching,
    async run(guesses) {
      const keys = guesses.map(({ key }) => key)
      const digests = (guesses[0]?.args.length ?? 1) - 1
      const args = guesses.flatMap((guess) => guess.args)
      return reach(() => checkScript.run(redis, keys, [digests, ...args])) as Promise<
        (string | number)[]
      >
    },
  })

  const read = createBatcher<string, string | null>({
    ...batching,
    run: (keys) => reach(() => redis.mget(...keys)),
  })

  return {
    /** From now on this is the owner's one valid code. */
    async remember(owner: CodeOwner, noticeId: string, code: string): Promise<void> {
      const [key = '', ...previousKeys] = keysOf(owner)
      const value = `${noticeId} ${options.triesPerCode} ${digestsOf(owner, code)[0]}`
      for (const previousKey of previousKeys) await reach(() => redis.del(previousKey))
      await remember({ key, value })
    },

    /** Takes one try, compares, and consumes the code when it is right. */
    async guess(owner: CodeOwner, code: string, noticeId = ''): Promise<GuessResult> {
      const args = [noticeId, ...digestsOf(owner, code)]
      for (const key of keysOf(owner)) {
        const answer = await check({ key, args })
        if (typeof answer === 'string') return { result: 'passed', noticeId: answer }
        if (answer >= 0) return { result: 'mismatch', triesLeft: answer }
      }
      return { result: 'gone' }
    },

    /** True while the code of this notice could still pass; a replaced or used one is not worth sending. */
    async isCurrent(owner: CodeOwner, noticeId: string): Promise<boolean> {
      for (const key of keysOf(owner)) {
        const stored = await read(key)
        if (stored?.startsWith(`${noticeId} `)) return true
      }
      return false
    },

    /** Undoes `remember` for a notice that could not be made. */
    async forget(owner: CodeOwner, noticeId: string): Promise<void> {
      for (const key of keysOf(owner)) {
        await reach(() => forgetScript.run(redis, [key], [noticeId]))
      }
    },
  }
}

async function reach<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw new Unavailable('redis', error)
  }
}
