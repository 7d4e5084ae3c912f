/**
 * Stores codes. A code is for one notice, or for several.
 *
 * Among several notices, each has separate digits, so the digits that a person types name the notice. One budget of tries
 * counts for all, and a right code ends all. The code has a separate id, and lies with the codes of one address, so any
 * send there replaces it. Leads from its id, and from other addresses, are found by checks and later sends.
 */
import { type CodeId, codeIdOf, type NoticeId } from '../base/ids.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Lane } from '../rules/caller.ts'
import type { CodeNames, CodeOwner, SharedOwner } from './code-names.ts'
import type { Among, Step, Take } from './code-steps.ts'

/** One notice of a code for several. */
export interface NewDigits {
  noticeId: NoticeId
  /** The address of the notice. */
  owner: CodeOwner
  code: string
  /** As in `remember`. */
  onPass?: string | undefined
  /** The first notice makes the code. */
  isFirst: boolean
  /** The lane of the send. A code whose tries in this lane are used up gets no further notice. */
  lane?: Lane | undefined
  /** Other notices of the code may have the same digits, because a test recipient has one code. */
  mayRepeat: boolean
}

/** `gone`: the code has ended, so no further notice may be sent. `same`: another notice has these digits. */
export type AddResult = 'pending' | 'current' | 'gone' | 'same'

const results: Readonly<Record<number, AddResult>> = { 1: 'pending', 0: 'current', [-2]: 'same' }

export function createNewCodes(deps: {
  take: Take
  names: CodeNames
  secrets: Secrets
  ttlMs: number
  triesPerCode: number
}) {
  const { take, names, secrets } = deps
  const { amongOf, amongOfId, digestsOf, sealHome } = names
  const ttlMs = String(deps.ttlMs)
  const tries = String(deps.triesPerCode)

  const sealedFor = (noticeId: NoticeId, onPass: string | undefined) =>
    onPass === undefined ? '' : secrets.seal(onPass, noticeId).toString('base64')

  const hasOthers = (places: readonly Among[]) => (places.length > 1 ? '1' : '0')

  /** Adds a lead under the current secret. */
  async function refer([among]: Among[], codeId: CodeId, home: SharedOwner, others: '0' | '1') {
    const step: Step = ['refer', codeId, ttlMs, others, sealHome(home, codeId)]
    if (among) await take({ ...among, step })
  }

  return {
    /**
     * Stores a new code. Returns true if the code is pending: the old code then stays valid until `settle`. `onPass` is
     * stored sealed, and returned when the code passes.
     */
    async remember(
      owner: CodeOwner,
      noticeId: NoticeId,
      code: string,
      onPass?: string,
    ): Promise<boolean> {
      const places = amongOf(owner)
      const [among] = places
      if (!among) return false
      const [digest = ''] = digestsOf(owner, code)
      const sealed = sealedFor(noticeId, onPass)
      const step: Step = [
        ...(['remember', codeIdOf(noticeId), tries, digest, ttlMs, hasOthers(places)] as const),
        ...([sealed, String(code.length)] as const),
      ]
      return (await take({ ...among, step })) === 1
    },

    /** Stores the digits of a notice. They pass from `settle` on, or at once without any earlier code. */
    async add(codeId: CodeId, home: SharedOwner, digits: NewDigits): Promise<AddResult> {
      const { noticeId, owner, code, onPass, isFirst, mayRepeat, lane = 'stranger' } = digits
      const places = amongOf(home)
      const digests = digestsOf(owner, code)
      const others = isFirst || mayRepeat ? [] : digestsOf(home, code)
      const sealed = sealedFor(noticeId, onPass)
      let answer = -1
      // A later notice goes where the first one is, which may be under the previous secret.
      for (const [index, among] of (isFirst ? places.slice(0, 1) : places).entries()) {
        const step: Step = [
          ...(['remember', codeId, tries, digests[index] ?? '', ttlMs] as const),
          ...([hasOthers(places), sealed, String(code.length)] as const),
          ...([noticeId, owner.channel, isFirst ? '1' : '0', lane, ...others] as const),
        ]
        answer = Number(await take({ ...among, step }))
        if (answer !== -1) break
      }
      const result = results[answer] ?? 'gone'
      if (result === 'gone' || result === 'same') return result
      const isElsewhere = owner.to !== home.to
      await Promise.all([
        refer(amongOfId(home.app, codeId), codeId, home, '0'),
        isElsewhere && refer(amongOf(owner), codeId, home, hasOthers(places)),
      ])
      return isElsewhere ? 'pending' : result
    },
  }
}
