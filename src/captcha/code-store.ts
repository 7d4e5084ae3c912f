/**
 * Codes in Redis: one key per (app, scene, channel, recipient). The key's name is a keyed hash and the
 * code a keyed digest: a reader of Redis learns neither. A code is compared in Redis, in one script
 * with its counting; what comes in one event-loop tick goes in one call.
 *
 * A new code replaces the one before it when its notice is committed, not sooner. Until then it waits
 * beside it as `pending`, so whatever becomes of the send (an error, a server away, the process gone) the
 * code in a person's hand stays what it was. It is settled before the 202, and again before it is sent.
 *
 * A guess is counted under a request id. When Redis gives no answer, that guess is taken back as soon as
 * Redis answers again: a caller who heard 503 has used up neither a try nor a right code.
 *
 * Beside the codes one key per (app, channel, recipient) lists the scenes whose code may live, so that support finds
 * every code without knowing what it is for.
 *
 * While `SECRET_PREVIOUS` is set a code may lie under either secret's name. A new one goes under the
 * current name, and the other name is emptied when it is settled, so an owner never has two valid codes.
 */
import { randomUUID } from 'node:crypto'
import { createBatcher } from '../base/batcher.ts'
import type { Channel } from '../base/channel.ts'
import { reachRedis } from '../base/reach-redis.ts'
import { loadScript, type RedisClient } from '../base/redis-script.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { Secrets } from '../crypto/secrets.ts'

/** Whose code it is: a code for one of these never passes for another. */
export interface CodeOwner {
  app: string
  scene: string
  channel: Channel
  to: string
}

export type GuessResult =
  /** `onPass`: what was to be kept until then. */
  | { result: 'passed'; noticeId: string; onPass?: string }
  | { result: 'mismatch'; triesLeft: number }
  | { result: 'gone' }

export type SettleResult =
  /** It is the code that passes. */
  | 'current'
  /** A newer code has its place, or it was used, or support ended it. */
  | 'gone'
  /** The owner has no code at all: Redis lost it. */
  | 'lost'

export type CodeStore = ReturnType<typeof createCodeStore>

/** One step of the script: its name and its arguments. */
type Step =
  | [
      'remember',
      noticeId: string,
      tries: string,
      digest: string,
      ttlMs: string,
      hasOthers: '0' | '1',
      onPass: string,
    ]
  | ['settle' | 'forget', noticeId: string]
  | ['guess', requestId: string, noticeId: string, ...digests: string[]]
  | ['takeBack', requestId: string]
  | ['look', noticeId: string]
  | ['drop']
  | ['note', scene: string, ttlMs: string]
  | ['scenes']

type Answer = string | number | [noticeId: string, sealed: string] | string[]

const script = loadScript('codes-N')
const maxUnanswered = 10_000
/** A scene is listed for so much longer than its code lives: in a cluster their servers' clocks differ. */
const slackMs = 60_000

export function createCodeStore(
  redis: RedisClient,
  secrets: Secrets,
  options: { keyPrefix: string; ttlMs: number; triesPerCode: number },
) {
  const { ttlMs, triesPerCode } = options
  // After a code's time there is nothing left to take back.
  const unanswered = createUntilAnswered({ maxAgeMs: ttlMs, maxEntries: maxUnanswered })

  const partsOf = (owner: CodeOwner) => [owner.app, owner.scene, owner.channel, owner.to]
  /** One key per secret in use, the current one's first. */
  const keysOf = (owner: CodeOwner) =>
    secrets.subjectHashes(partsOf(owner)).map((hash) => `${options.keyPrefix}code:${hash}`)

  const listKeysOf = ({ app, channel, to }: Omit<CodeOwner, 'scene'>) =>
    secrets
      .subjectHashes(['scenes', app, channel, to])
      .map((hash) => `${options.keyPrefix}scenes:${hash}`)

  const take = createBatcher<{ key: string; step: Step }, Answer>({
    // In a cluster the keys of one call must lie together, which those of different owners do not.
    ...(redis.isCluster
      ? { maxItems: 1, maxConcurrent: 256 }
      : { maxItems: 128, maxConcurrent: 4 }),
    run(steps) {
      const keys = steps.map(({ key }) => key)
      const args = steps.flatMap(({ step }) => [step.length, ...step])
      return reachRedis(script.run(redis, keys, args)) as Promise<Answer[]>
    },
  })

  /** Without what can't be read any more: its secret is gone, and a right code still passes. */
  function unsealed([noticeId, sealed]: [string, string]) {
    try {
      return { noticeId, onPass: secrets.unseal(Buffer.from(sealed, 'base64'), noticeId) }
    } catch {
      return { noticeId }
    }
  }

  const takeUnderEveryName = (owner: CodeOwner, step: Step) =>
    Promise.all(keysOf(owner).map((key) => take({ key, step })))

  /** At once, and again when Redis answers: what is taken back may still be on its way there. */
  function undo(owner: CodeOwner, step: ['forget' | 'takeBack', id: string]): void {
    const run = () => takeUnderEveryName(owner, step)
    run().catch(() => {})
    unanswered.add(step.join(' '), run)
  }

  /**
   * Puts a pending code in the place of the one before it. `current`: this notice's code is the owner's one
   * valid code, from now on or since an earlier call.
   */
  async function settle(owner: CodeOwner, noticeId: string): Promise<SettleResult> {
    const keys = keysOf(owner)
    let hasCodes = false
    for (const key of keys) {
      const answer = await take({ key, step: ['settle', noticeId] })
      if (answer === 0) hasCodes = true
      if (answer !== 1) continue
      // Also the current secret's: while two secrets are swapped, either may be the newer code's.
      for (const other of keys) if (other !== key) await reachRedis(redis.del(other))
      return 'current'
    }
    return hasCodes ? 'gone' : 'lost'
  }

  return {
    /**
     * True when it is pending: the code before it stays valid until this one is settled. `onPass`: kept sealed, and
     * handed out when the code passes.
     */
    async remember(
      owner: CodeOwner,
      noticeId: string,
      code: string,
      onPass?: string,
    ): Promise<boolean> {
      const [key = '', ...previousKeys] = keysOf(owner)
      const digest = secrets.codeDigests([...partsOf(owner), code])[0] as string
      const hasOthers = previousKeys.length > 0 ? '1' : '0'
      const tries = String(triesPerCode)
      const sealed = onPass === undefined ? '' : secrets.seal(onPass, noticeId).toString('base64')
      const step: Step = ['remember', noticeId, tries, digest, String(ttlMs), hasOthers, sealed]
      const [listKey = ''] = listKeysOf(owner)
      // Taken in one call, but in a cluster; then too no code is settled that is not listed.
      const [, answer] = await Promise.all([
        take({ key: listKey, step: ['note', owner.scene, String(ttlMs + slackMs)] }),
        take({ key, step }),
      ])
      return answer === 1
    },

    settle,

    /** The same for a notice that is committed, without waiting: when Redis answers again. */
    settleSoon(owner: CodeOwner, noticeId: string): void {
      unanswered.add(`settle ${noticeId}`, () => settle(owner, noticeId))
    },

    /**
     * Takes one try, compares, and uses the code up when it is right. Throws Unavailable when Redis gave
     * no answer; whatever it did is taken back then.
     */
    async guess(owner: CodeOwner, code: string, noticeId = ''): Promise<GuessResult> {
      const requestId = randomUUID()
      const digests = secrets.codeDigests([...partsOf(owner), code])
      const step: Step = ['guess', requestId, noticeId, ...digests]
      try {
        for (const key of keysOf(owner)) {
          const answer = await take({ key, step })
          if (typeof answer === 'string') return { result: 'passed', noticeId: answer }
          if (typeof answer === 'object') {
            return { result: 'passed', ...unsealed(answer as [string, string]) }
          }
          if (answer >= 0) return { result: 'mismatch', triesLeft: answer }
        }
        return { result: 'gone' }
      } catch (error) {
        undo(owner, ['takeBack', requestId])
        throw error
      }
    },

    /** The code that would pass now (with an id, that of this notice), without the code; null when there is none. */
    async look(
      owner: CodeOwner,
      noticeId = '',
    ): Promise<{ triesLeft: number; expiresAt: Date } | null> {
      for (const key of keysOf(owner)) {
        const answer = await take({ key, step: ['look', noticeId] })
        if (typeof answer !== 'string') continue
        const [triesLeft = 0, endsMs = 0] = answer.split(' ').map(Number)
        return { triesLeft, expiresAt: new Date(endsMs) }
      }
      return null
    },

    /** Every scene that has a code, or one that is on its way; also some whose code is used. */
    async scenesOf(owner: Omit<CodeOwner, 'scene'>): Promise<string[]> {
      const keys = listKeysOf(owner)
      const lists = await Promise.all(keys.map((key) => take({ key, step: ['scenes'] })))
      return [...new Set((lists as string[][]).flat())]
    },

    /** Ends every code of the owner, also one that is on its way: that one is gone, and not lost. */
    async drop(owner: CodeOwner): Promise<void> {
      await takeUnderEveryName(owner, ['drop'])
    },

    /** Undoes `remember` for a notice that could not be made, now or when Redis answers again. */
    forget(owner: CodeOwner, noticeId: string): void {
      undo(owner, ['forget', noticeId])
    },

    close(): void {
      unanswered.close()
    },
  }
}
