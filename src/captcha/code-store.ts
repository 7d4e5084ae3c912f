/**
 * Codes in Redis. An app and an address have one key, so that support finds the codes of every scene. The key's name is a
 * keyed hash, and the code a keyed digest, so a reader of Redis learns neither. One script compares and counts. All steps
 * of one event-loop tick go in one call.
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
import { type CodeId, codeIdOf, type NoticeId } from '../base/ids.ts'
import type { RedisClient } from '../base/redis-script.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Lane } from '../rules/caller.ts'
import {
  type EndedCode,
  type Gone,
  type GuessResult,
  goneBy,
  type LiveCode,
  liveBy,
  type RepeatableGuess,
  readAnswers,
  type SettleResult,
} from './code-answers.ts'
import { type CodeOwner, createCodeNames, isShared, type SharedOwner } from './code-names.ts'
import { createCodeSteps, type Step } from './code-steps.ts'
import { createUndo } from './code-undo.ts'
import { createNewCodes } from './new-codes.ts'

export type { CodeOwner, SharedOwner } from './code-names.ts'

export type CodeStore = ReturnType<typeof createCodeStore>

const maxUnanswered = 10_000

const triesIn = ({ triesLeft, knownTriesLeft }: LiveCode, lane: Lane): number =>
  lane === 'known' ? knownTriesLeft : triesLeft

export function createCodeStore(
  redis: RedisClient,
  secrets: Secrets,
  options: { keyPrefix: string; ttlMs: number; triesPerCode: number },
) {
  const { ttlMs, triesPerCode } = options
  // After the life of a code there is nothing to take back.
  const unanswered = createUntilAnswered({ maxAgeMs: ttlMs, maxEntries: maxUnanswered })

  const names = createCodeNames(secrets, options.keyPrefix)
  const { amongOf, amongOfId, digestsOf, leadBy } = names
  const take = createCodeSteps(redis)
  const { endedBy, repeatedBy } = readAnswers(secrets)
  const undo = createUndo(unanswered)

  /** The code that a step has ended, under either name or where a lead leads. */
  async function endedUnderAnyName(owner: CodeOwner, step: Step): Promise<EndedCode | undefined> {
    const answers = await Promise.all(amongOf(owner).map((among) => take({ ...among, step })))
    const ended = answers.map((answer) => {
      const lead = leadBy(answer)
      if (!lead || step[0] !== 'drop') return endedBy(answer)
      return endedUnderAnyName(lead.home, ['drop', lead.codeId, step[2]])
    })
    return (await Promise.all(ended)).find((one) => one)
  }

  /**
   * Replaces the old code by the pending one. `current`: this notice's code passes, and no other code of the owner does,
   * except for other notices with the same code id.
   */
  async function settle(
    owner: CodeOwner,
    noticeId: NoticeId,
    codeId: CodeId = codeIdOf(noticeId),
  ): Promise<SettleResult> {
    const places = amongOf(owner)
    let hasCodes = false
    for (const among of places) {
      const settleHere = (isCleared: '' | '1') =>
        take({ ...among, step: ['settle', codeId, noticeId, isCleared] })
      let answer = await settleHere('')
      let lead = leadBy(answer)
      if (lead && lead.codeId !== codeId) {
        // Ended where it is, before its lead is lost.
        await endedUnderAnyName(lead.home, ['drop', lead.codeId, randomUUID()])
        answer = await settleHere('1')
        lead = leadBy(answer)
      }
      if (answer === 0) hasCodes = true
      const endsMs = Number(lead?.endsMs ?? answer)
      if (endsMs <= 0) continue
      // While processes with other secrets run, either key may have the newer code. So the key of the current secret is
      // cleared too, if the settled code is under the previous secret.
      const clear: Step = ['clear', String(endsMs), codeId]
      for (const other of places) if (other !== among) await take({ ...other, step: clear })
      return lead ? settle(lead.home, noticeId, codeId) : 'current'
    }
    return hasCodes ? 'gone' : 'lost'
  }

  return {
    digestsOf,

    ...createNewCodes({ take, names, secrets, ttlMs, triesPerCode }),

    settle,

    /** Settles the code of a committed notice now, or in the background when Redis answers again. */
    async settleCommitted(owner: CodeOwner, noticeId: NoticeId, codeId?: CodeId): Promise<void> {
      const run = () => settle(owner, noticeId, codeId)
      await run().catch(() => unanswered.add(`settle ${noticeId}`, run))
    },

    /**
     * Takes one try of the lane, compares, and uses up a right code. Throws Unavailable; its effects are then taken back.
     * If a repeat has passed meanwhile, they stay, and `onKept` is called.
     */
    async guess(
      owner: CodeOwner,
      code: string,
      codeId: CodeId = '',
      repeatable?: RepeatableGuess,
      onKept?: (ended: EndedCode) => void,
      lane: Lane = 'stranger',
    ): Promise<GuessResult> {
      const requestId = randomUUID()
      const sealed = repeatable ? secrets.seal(repeatable.proof, codeId).toString('base64') : ''
      const step: Step = [
        ...(['guess', requestId, lane, codeId, repeatable?.keyId ?? '', sealed] as const),
        ...digestsOf(owner, code),
      ]
      try {
        let gone = -1
        for (const among of amongOf(owner)) {
          const answer = await take({ ...among, step })
          if (typeof answer === 'object' && answer[0] === 0) {
            const ofSeveral = isShared(owner) ? { codeId } : {}
            return { result: 'mismatch', triesLeft: 0, noticeId: answer[1] as string, ...ofSeveral }
          }
          const repeated = repeatedBy(answer, codeId)
          if (repeated) return repeated
          const ended = endedBy(answer)
          if (ended) return { result: 'passed', ...ended }
          if (Number(answer) >= 0) return { result: 'mismatch', triesLeft: Number(answer) }
          gone = Math.min(gone, Number(answer))
        }
        return goneBy(gone)
      } catch (error) {
        undo(requestId, () => endedUnderAnyName(owner, ['takeBack', requestId, lane]), onKept)
        throw error
      }
    },

    /** The proof of the right check that this one repeats, within a minute. Takes no try. */
    async again(owner: CodeOwner, code: string, codeId: CodeId, keyId: string) {
      const step: Step = ['again', codeId, keyId, ...digestsOf(owner, code)]
      for (const among of amongOf(owner)) {
        const repeated = repeatedBy(await take({ ...among, step }), codeId)
        if (repeated) return repeated
      }
      return undefined
    },

    /**
     * The current code, without its digits. With an id, only the code of that id. With a lane, only a code that has tries left
     * in it.
     */
    async look(owner: CodeOwner, codeId: CodeId = '', lane?: Lane): Promise<LiveCode | Gone> {
      let gone = -1
      for (const among of amongOf(owner)) {
        const answer = await take({ ...among, step: ['look', codeId] })
        const lead = leadBy(answer)
        if (lead) return this.look(lead.home, lead.codeId, lane)
        const live = liveBy(answer)
        if (live) return lane && triesIn(live, lane) === 0 ? goneBy(-2) : live
        gone = Math.min(gone, Number(answer))
      }
      return goneBy(gone)
    },

    /** The owner of a code for several notices, found by its id. Undefined if there is no such code in this app. */
    async findHome(app: string, codeId: CodeId): Promise<SharedOwner | undefined> {
      for (const among of amongOfId(app, codeId)) {
        const lead = leadBy(await take({ ...among, step: ['look', codeId] }))
        if (lead) return lead.home
      }
      return undefined
    },

    /** Every scene with a live or pending code, and some scenes whose code is used. */
    async scenesOf(owner: Omit<CodeOwner, 'scene'>): Promise<string[]> {
      const places = amongOf({ ...owner, scene: '' })
      const lists = await Promise.all(places.map((among) => take({ ...among, step: ['scenes'] })))
      return [...new Set((lists as string[][]).flat())]
    },

    /**
     * Ends every code of the owner, or the code of one notice. A pending code becomes `gone`, not `lost`. Returns a code
     * that was not used before. With `onLate`, and if Redis gives no answer, the step is done again when Redis answers, and
     * `onLate` is called with that code: what follows from its end is then done once, by this call or by a repeat.
     */
    async drop(
      owner: CodeOwner,
      codeId: CodeId = '',
      onLate?: (ended: EndedCode) => void,
    ): Promise<EndedCode | undefined> {
      const step: Step = ['drop', codeId, randomUUID()]
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
    forget(owner: CodeOwner, noticeId: NoticeId, codeId: CodeId = codeIdOf(noticeId)): void {
      undo(`forget ${noticeId}`, () => endedUnderAnyName(owner, ['forget', codeId, noticeId]))
    },

    close(): void {
      unanswered.close()
    },
  }
}
