/**
 * Codes in Redis: one key per (app, channel, recipient), so that support finds the codes of every scene. The key's name
 * is a keyed hash, and the code a keyed digest, so a reader of Redis learns neither. One script compares and counts. All
 * steps of one event-loop tick go in one call.
 *
 * A new code replaces the old one when its notice is committed. Until then it waits beside the old code as `pending`.
 * If the send fails or the process dies, the old code stays valid. A code is settled before the 202, and again before
 * its message is sent.
 *
 * A guess is counted under a request id. If Redis gives no answer, that guess is taken back as soon as Redis answers
 * again. So a caller with a 503 has lost neither a try nor a right code.
 *
 * While `SECRET_PREVIOUS` is set, a code may lie under the name of either secret. A new code goes under the current
 * name, and settling it removes the earlier codes under the other name. So an owner never has two valid codes.
 */
import { randomUUID } from 'node:crypto'
import type { Channel } from '../base/channel.ts'
import { defaultScene } from '../base/default-scene.ts'
import type { RedisClient } from '../base/redis-script.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { Secrets } from '../crypto/secrets.ts'
import {
  type EndedCode,
  type Gone,
  type GuessResult,
  goneBy,
  type LiveCode,
  type RepeatableGuess,
  readAnswers,
  type SettleResult,
} from './code-answers.ts'
import { createCodeSteps, type Step } from './code-steps.ts'
import { createUndo } from './code-undo.ts'

/** The owner of a code: a code for one owner never passes for another. */
export interface CodeOwner {
  app: string
  scene: string
  channel: Channel
  to: string
}

/** The owner of the code of a captcha's row. */
export const ownerOf = (row: {
  app: string
  scene: string | null
  channel: Channel
  recipient: string
}): CodeOwner => ({
  app: row.app,
  scene: row.scene ?? defaultScene,
  channel: row.channel,
  to: row.recipient,
})

export type CodeStore = ReturnType<typeof createCodeStore>

const maxUnanswered = 10_000

export function createCodeStore(
  redis: RedisClient,
  secrets: Secrets,
  options: { keyPrefix: string; ttlMs: number; triesPerCode: number },
) {
  const { ttlMs, triesPerCode } = options
  // After the life of a code there is nothing to take back.
  const unanswered = createUntilAnswered({ maxAgeMs: ttlMs, maxEntries: maxUnanswered })

  const partsOf = (owner: CodeOwner) => [owner.app, owner.scene, owner.channel, owner.to]
  /** One key per secret in use, the current secret first. */
  const keysOf = ({ app, channel, to }: Omit<CodeOwner, 'scene'>) =>
    secrets.subjectHashes([app, channel, to]).map((hash) => `${options.keyPrefix}code:${hash}`)

  /** One digest per secret in use, the current secret first. */
  const digestsOf = (owner: CodeOwner, code: string) =>
    secrets.codeDigests([...partsOf(owner), code])

  const take = createCodeSteps(redis)

  const takeUnderEveryName = (owner: CodeOwner, step: Step) =>
    Promise.all(keysOf(owner).map((key) => take({ key, scene: owner.scene, step })))

  const { endedBy, repeatedBy } = readAnswers(secrets)

  const undo = createUndo(unanswered)

  /** The code that a step has ended under either name. */
  const endedUnderAnyName = async (owner: CodeOwner, step: Step) =>
    (await takeUnderEveryName(owner, step)).map(endedBy).find((ended) => ended)

  /** Replaces the old code by the pending one. `current`: this notice's code is the owner's one valid code. */
  async function settle(owner: CodeOwner, noticeId: string): Promise<SettleResult> {
    const keys = keysOf(owner)
    const { scene } = owner
    let hasCodes = false
    for (const key of keys) {
      const answer = await take({ key, scene, step: ['settle', noticeId] })
      if (answer === 0) hasCodes = true
      const endsMs = Number(answer)
      if (endsMs <= 0) continue
      // While processes with other secrets run, either key may have the newer code. So the key of the current secret is
      // cleared too, if the settled code is under the previous secret.
      const clear: Step = ['clear', String(endsMs), noticeId]
      for (const other of keys) if (other !== key) await take({ key: other, scene, step: clear })
      return 'current'
    }
    return hasCodes ? 'gone' : 'lost'
  }

  return {
    digestsOf,

    /**
     * Stores a new code. Returns true if the code is pending: the old code then stays valid until `settle`. `onPass` is
     * stored sealed, and returned when the code passes.
     */
    async remember(
      owner: CodeOwner,
      noticeId: string,
      code: string,
      onPass?: string,
    ): Promise<boolean> {
      const [key = '', ...previousKeys] = keysOf(owner)
      const [digest = ''] = digestsOf(owner, code)
      const hasOthers = previousKeys.length > 0 ? '1' : '0'
      const tries = String(triesPerCode)
      const sealed = onPass === undefined ? '' : secrets.seal(onPass, noticeId).toString('base64')
      const { length } = code
      const step: Step = [
        ...(['remember', noticeId, tries, digest, String(ttlMs), hasOthers, sealed] as const),
        String(length),
      ]
      return (await take({ key, scene: owner.scene, step })) === 1
    },

    settle,

    /** Settles the code of a committed notice in the background, when Redis answers again. */
    settleSoon(owner: CodeOwner, noticeId: string): void {
      unanswered.add(`settle ${noticeId}`, () => settle(owner, noticeId))
    },

    /**
     * Takes one try, compares, and uses up a right code. Throws Unavailable; its effects are then taken back. If a repeat has
     * passed meanwhile, they stay, and `onKept` is called.
     */
    async guess(
      owner: CodeOwner,
      code: string,
      noticeId = '',
      repeatable?: RepeatableGuess,
      onKept?: (ended: EndedCode) => void,
    ): Promise<GuessResult> {
      const requestId = randomUUID()
      const sealed = repeatable ? secrets.seal(repeatable.proof, noticeId).toString('base64') : ''
      const step: Step = [
        ...(['guess', requestId, noticeId, repeatable?.keyId ?? '', sealed] as const),
        ...digestsOf(owner, code),
      ]
      try {
        let gone = -1
        for (const key of keysOf(owner)) {
          const answer = await take({ key, scene: owner.scene, step })
          if (typeof answer === 'object' && answer[0] === 0) {
            return { result: 'mismatch', triesLeft: 0, noticeId: answer[1] as string }
          }
          const repeated = repeatedBy(answer, noticeId)
          if (repeated) return repeated
          const ended = endedBy(answer)
          if (ended) return { result: 'passed', ...ended }
          if (Number(answer) >= 0) return { result: 'mismatch', triesLeft: Number(answer) }
          gone = Math.min(gone, Number(answer))
        }
        return goneBy(gone)
      } catch (error) {
        undo(requestId, () => endedUnderAnyName(owner, ['takeBack', requestId]), onKept)
        throw error
      }
    },

    /** The proof of the right check that this one repeats, within a minute. Takes no try. */
    async again(owner: CodeOwner, code: string, noticeId: string, keyId: string) {
      const step: Step = ['again', noticeId, keyId, ...digestsOf(owner, code)]
      for (const key of keysOf(owner)) {
        const repeated = repeatedBy(await take({ key, scene: owner.scene, step }), noticeId)
        if (repeated) return repeated
      }
      return undefined
    },

    /** The current code, without its digits, even if it is out of tries. With an id, only the code of that notice. */
    async look(owner: CodeOwner, noticeId = ''): Promise<LiveCode | Gone> {
      let gone = -1
      for (const key of keysOf(owner)) {
        const answer = await take({ key, scene: owner.scene, step: ['look', noticeId] })
        if (typeof answer === 'string') {
          const [triesLeft = 0, endsMs = 0, length = 0] = answer.split(' ').map(Number)
          return { result: 'live', triesLeft, expiresAt: new Date(endsMs), length }
        }
        gone = Math.min(gone, Number(answer))
      }
      return goneBy(gone)
    },

    /** Every scene with a live or pending code, and some scenes whose code is used. */
    async scenesOf(owner: Omit<CodeOwner, 'scene'>): Promise<string[]> {
      const keys = keysOf(owner)
      const lists = await Promise.all(keys.map((key) => take({ key, scene: '', step: ['scenes'] })))
      return [...new Set((lists as string[][]).flat())]
    },

    /**
     * Ends every code of the owner, or the code of one notice. A pending code becomes `gone`, not `lost`. Returns a code
     * that was not used before. With `onLate`, and if Redis gives no answer, the step is done again when Redis answers, and
     * `onLate` is called with that code: what follows from its end is then done once, by this call or by a repeat.
     */
    async drop(
      owner: CodeOwner,
      noticeId = '',
      onLate?: (ended: EndedCode) => void,
    ): Promise<EndedCode | undefined> {
      const step: Step = ['drop', noticeId, randomUUID()]
      const run = () => endedUnderAnyName(owner, step)
      try {
        return await run()
      } catch (error) {
        let isDone = false
        const runLate = async () => {
          const ended = isDone ? undefined : await run()
          isDone = true
          if (ended) onLate?.(ended)
        }
        if (onLate) unanswered.add(step.join(' '), runLate)
        throw error
      }
    },

    /** Undoes `remember` for a notice that was not made, now or when Redis answers again. */
    forget(owner: CodeOwner, noticeId: string): void {
      undo(`forget ${noticeId}`, () => endedUnderAnyName(owner, ['forget', noticeId]))
    },

    close(): void {
      unanswered.close()
    },
  }
}
