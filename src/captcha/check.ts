/**
 * Checks a code. A guess is counted twice before it is compared: by the limiter, whose budget survives resends, and
 * with the code, whose tries end it.
 *
 * Only a check of a live code is a guess. Without a live code nothing is counted for the recipient, nothing locks, and
 * no event is written. Otherwise a stranger with a page's key could lock out, report and store recipients of their
 * choice. Rules on the caller (`browser.checkRules`) count those checks too.
 */
import { randomUUID } from 'node:crypto'
import type { FieldWord, Values } from '../base/words.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import { type Caller, type Origin, originOf } from '../rules/caller.ts'
import type { GuessLimits } from '../rules/guess-limits.ts'
import type { Refusal } from '../rules/quota.ts'
import { invalidRequest, limitedBy, type Refused } from '../rules/refused.ts'
import type { CaptchaEvents } from './captcha-events.ts'
import type { Challenges } from './challenges.ts'
import type { EndedCode, Gone, GoneReason, GuessResult, Repeated } from './code-answers.ts'
import type { CodeOwner, CodeStore } from './code-store.ts'
import {
  type CodeNamed,
  createFindCode,
  type FindCodeDeps,
  type FoundCode,
  ownersOf,
  targetOf,
  typedOf,
} from './guess-targets.ts'
import type { KnownBrowsers } from './known-browsers.ts'
import type { CaptchaMetrics } from './metrics.ts'
import type { Passes } from './passes.ts'
import { createProofs, type Proof } from './proofs.ts'

/** The request for a check, by HTTP or in process. */
export type CheckAsked = CodeNamed & {
  /** Compared as it is: upper and lower case are different. */
  code: string
  /** A code of the wrong form is a wrong code and counts, for callers that do not know the form. */
  anyForm?: boolean | undefined
  /** The address of the person, if the caller is a server. */
  ip?: string | undefined
  /** The answer to a challenge, from callers in pages. */
  challenge?: string | undefined
  /** The token of a known browser; `true` asks for one. */
  known?: string | true | undefined
}

export type CheckOutcome = Passed | Refused

/** `pass`: a proof for servers. `known`: the token of the browser, for pages and for callers that sent `known`. */
type Passed = { outcome: 'passed'; id: string; scene: string; known?: string } & Proof

export type CheckCaptcha = ReturnType<typeof createCheckCaptcha>

interface Guess extends FoundCode {
  code: string
  origin: Origin
  /**
   * The key whose same check gets the same pass again, because its answer may have been lost on the way. Only checks with
   * an id repeat, and none in process, where no answer is lost.
   */
  repeatKeyId: string | undefined
}

type Mismatch = Extract<GuessResult, { result: 'mismatch' }>

type Checked = Counted | Repeated

type Counted =
  | Gone
  | ({ result: 'passed'; proof?: string | undefined } & EndedCode)
  | (Mismatch & { lockedForMs?: number })
  | { result: 'refused'; refusal: Refusal }

export function createCheckCaptcha(
  deps: FindCodeDeps & {
    challenges: Pick<Challenges, 'enter' | 'refuse'>
    limits: GuessLimits
    codes: CodeStore
    code: { length: number; own: boolean }
    passes: Pick<Passes, 'issue'>
    known: Pick<KnownBrowsers, 'laneOf' | 'issue'>
    metrics: Pick<CaptchaMetrics, 'checks'>
    events: Pick<CaptchaEvents, 'passed' | 'ended' | 'locked'>
    testRecipients: Pick<TestRecipients, 'isTestRecipient'>
    /** PostgreSQL's time. */
    nowMs: () => number
    /** Called after each check for its addresses, for records. Must not throw, and is not awaited. */
    onChecked?: (owner: CodeOwner, requestId: string, checked: Counted) => void
  },
) {
  const { challenges, limits, codes, known, metrics, events } = deps
  const findCode = createFindCode(deps)
  const proofs = createProofs(deps)

  /** Throws Unavailable if Redis is out of reach; then no try and no code is used up. */
  return async function checkCaptcha(asked: CheckAsked, caller: Caller): Promise<CheckOutcome> {
    const found = await findCode(asked, caller)
    if ('outcome' in found) return found
    const { code } = asked
    const { scene, id, country } = found
    const wrongForm = asked.anyForm ? undefined : formProblem(code, deps.code)
    if (wrongForm) {
      const isOfOtherLength = await hasLength(found, code, id)
      if (isOfOtherLength) return { outcome: 'code_gone', reason: 'expired' }
      return invalidRequest('code', ...wrongForm)
    }

    const lane = await known.laneOf(asked.known, ...ownersOf(found))
    const origin = originOf(caller, asked.ip, country, lane)
    const repeatKeyId = id === undefined || caller.isInProcess ? undefined : caller.keyId
    const guess = { ...found, code, origin, repeatKeyId }
    const entry = await challenges.enter(caller, asked.challenge)
    if ('outcome' in entry) return entry
    let checked: Checked | undefined
    try {
      checked = await check(guess, entry.isHuman)
    } finally {
      if (!checked || checked.result === 'refused') entry.giveBack()
    }
    switch (checked.result) {
      case 'refused':
        return challenges.refuse(caller, limitedBy('check', checked.refusal))
      case 'gone':
        return { outcome: 'code_gone', reason: checked.reason }
      case 'mismatch': {
        const { result: _, noticeId: __, codeId: ___, ...members } = checked
        return { outcome: 'code_mismatch', ...members }
      }
      case 'repeated':
      case 'passed': {
        const typed = typedOf(guess, checked)
        const proof = proofs.read(checked) ?? proofs.make(typed)
        const ofBrowser = await known.issue(typed, caller, asked.known)
        const id = ('codeId' in checked && checked.codeId) || checked.noticeId
        return { outcome: 'passed', id, scene, ...proof, ...ofBrowser }
      }
    }
  }

  /**
   * True if the live code has the length of these digits: it was made before `code.length` changed. The person then
   * needs a new code, and has typed nothing wrong. Costs no try.
   */
  async function hasLength(owner: CodeOwner, code: string, id: string | undefined) {
    if (!/^[0-9]{4,10}$/.test(code) || code.length === deps.code.length) return false
    const live = await codes.look(owner, id)
    return live.result === 'live' && live.length === code.length
  }

  /** `isHuman`: rules in mode challenge admit the request. */
  async function check(guess: Guess, isHuman: boolean): Promise<Checked> {
    const requestId = randomUUID()
    const checked = await compare(guess, requestId, isHuman)
    await record(guess, requestId, checked)
    return checked
  }

  /** Records a check. A repeat has no effects. */
  async function record(guess: Guess, requestId: string, checked: Checked): Promise<void> {
    if (checked.result === 'repeated') return
    const isTest = deps.testRecipients.isTestRecipient(guess.to)
    // A passed test code counts nowhere. Otherwise an attacker with a test code could mix right checks here with wrong
    // guesses elsewhere.
    if (isTest && checked.result === 'passed') return
    metrics.checks.inc({ result: checked.result })
    const owners = checked.result === 'passed' ? [typedOf(guess, checked)] : ownersOf(guess)
    for (const owner of owners) deps.onChecked?.(owner, requestId, checked)
    if (checked.result === 'passed') {
      const typed = typedOf(guess, checked)
      events.passed(typed, checked.codeId ?? checked.noticeId)
      await events.ended(typed, checked, 'passed')
    } else if ('noticeId' in checked && checked.noticeId) {
      await events.ended(guess, checked, 'tries')
    }
    if (checked.result === 'refused') announceLock(guess, checked.refusal)
  }

  function announceLock(guess: Guess, refusal: Refusal): void {
    if (refusal.newLock) events.locked(guess, refusal.newLock)
  }

  async function compare(guess: Guess, requestId: string, isHuman: boolean): Promise<Checked> {
    const { lane = 'stranger' } = guess.origin
    const live = await codes.look(guess.place, guess.id, lane)
    if (live.result === 'gone') {
      const { id, code, repeatKeyId } = guess
      const mayRepeat = live.reason === 'used' && id !== undefined && repeatKeyId !== undefined
      const repeated = mayRepeat && (await codes.again(guess.place, code, id, repeatKeyId))
      if (repeated) return repeated
      return answerWithoutCode(guess, live.reason, isHuman)
    }
    const target = await targetOf(codes, guess, live)
    if (!target) return answerWithoutCode(guess, 'expired', isHuman)
    const counted = await limits.count(target.guessed, requestId, isHuman)
    if ('refusal' in counted) return { result: 'refused', refusal: counted.refusal }

    let compared: GuessResult
    const { counts } = counted
    const { repeatKeyId, code } = guess
    const repeatable =
      repeatKeyId === undefined ? undefined : proofs.forRepeats(repeatKeyId, target.owner)
    const passed = (ended: EndedCode) => {
      limits.forgive(counts)
      limits.refund(ended)
    }
    try {
      const onKept = (ended: EndedCode) => {
        passed(ended)
        void record(guess, requestId, { result: 'passed', ...ended })
      }
      compared = await codes.guess(target.owner, code, target.id, repeatable, onKept, lane)
    } catch (error) {
      limits.giveBack(counts)
      throw error
    }
    // The code ended after the look-up, so no try was taken.
    if (compared.result === 'gone' || compared.result === 'repeated') limits.giveBack(counts)
    if (compared.result === 'passed') {
      passed(compared)
      return { ...compared, proof: repeatable?.proof }
    }
    if (compared.result !== 'mismatch') return compared
    const { waitMs, refusal } = await limits.afterMismatch(counts)
    if (refusal) announceLock(guess, refusal)
    return waitMs > 0 ? { ...compared, lockedForMs: waitMs } : compared
  }

  async function answerWithoutCode(
    guess: Guess,
    reason: GoneReason,
    isHuman: boolean,
  ): Promise<Checked> {
    const { origin } = guess
    const refusal =
      (await limits.countWithoutCode(guess, origin, isHuman)) ??
      (await limits.refuseIfLocked(guess, origin))
    return refusal ? { result: 'refused', refusal } : { result: 'gone', reason }
  }
}

/** Why this text can't be a sent code; undefined if it can. */
function formProblem(
  code: string,
  { length, own }: { length: number; own: boolean },
): [FieldWord, Values] | undefined {
  if (own) return /^[A-Za-z0-9]{4,10}$/.test(code) ? undefined : ['lettersOrDigits', {}]
  return code.length === length && /^[0-9]+$/.test(code) ? undefined : ['digits', { n: length }]
}
