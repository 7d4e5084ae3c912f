/**
 * Codes in Redis: one key per (app, scene, channel, recipient), so a new code replaces the old one by
 * itself, with its time to live. The key's name is a keyed hash and the code a keyed digest: whoever
 * reads Redis learns neither. A code is compared in Redis, in one script with its counting.
 *
 * While `SECRET_PREVIOUS` is set a code may lie under either secret's name. A new one goes under the
 * current name and the previous name is emptied first, so an owner never has two valid codes.
 */
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

const checkScript = loadScript('check-code-1')
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

  return {
    /** From now on this is the owner's one valid code. */
    async remember(owner: CodeOwner, noticeId: string, code: string): Promise<void> {
      const [key = '', ...previousKeys] = keysOf(owner)
      const value = `${noticeId} ${options.triesPerCode} ${digestsOf(owner, code)[0]}`
      await reach(async () => {
        for (const previousKey of previousKeys) await redis.del(previousKey)
        await redis.set(key, value, 'PX', options.ttlMs)
      })
    },

    /** Takes one try, compares, and consumes the code when it is right. */
    async guess(owner: CodeOwner, code: string, noticeId?: string): Promise<GuessResult> {
      const args = [noticeId ?? '', ...digestsOf(owner, code)]
      for (const key of keysOf(owner)) {
        const [status, detail] = (await reach(() => checkScript.run(redis, [key], args))) as [
          number,
          (string | number)?,
        ]
        if (status === 1) return { result: 'passed', noticeId: String(detail) }
        if (status === 0) return { result: 'mismatch', triesLeft: Number(detail) }
      }
      return { result: 'gone' }
    },

    /** True while the code of this notice could still pass; a replaced or used one is not worth sending. */
    async isCurrent(owner: CodeOwner, noticeId: string): Promise<boolean> {
      for (const key of keysOf(owner)) {
        const stored = await reach(() => redis.get(key))
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
