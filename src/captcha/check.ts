/**
 * Checks a code. A guess is counted twice before it is compared: by the limiter, whose budget survives resends, and
 * with the code, whose tries end it.
 *
 * Only a check of a live code is a guess. Without a live code nothing is counted for the recipient, nothing locks, and
 * no event is written. Otherwise a stranger with a page's key could lock out, report and store recipients of their
 * choice. Rules on the caller (`browser.checkRules`) count those checks too.
 */
import { randomUUID } from 'node:crypto'
import type { Channel } from '../base/channel.ts'
import type { Metrics } from '../base/metrics.ts'
import type { FieldWord, Values } from '../base/words.ts'
import { type NormaliseRecipient, refusedRecipient } from '../recipient/normalise-recipient.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import { type Caller, type Origin, originOf } from '../rules/caller.ts'
import type { GuessLimits } from '../rules/guess-limits.ts'
import type { Refusal } from '../rules/quota.ts'
import { invalidRequest, limitedBy, type Refused } from '../rules/refused.ts'
import type { CaptchaEvents } from './captcha-events.ts'
import type { Challenges } from './challenges.ts'
import type { EndedCode, Gone, GoneReason, GuessResult, Repeated } from './code-answers.ts'
import type { CodeOwner, CodeStore } from './code-store.ts'
import type { KnownBrowsers } from './known-browsers.ts'
import type { Passes } from './passes.ts'

/** The request for a check, by HTTP or in process. */
export interface CheckAsked {
  channel: Channel
  /** In any spelling. */
  to: string
  scene: string
  /** Compared as it is: upper and lower case are different. */
  code: string
  /** A code of the wrong form is a wrong code and counts, for callers that do not know the form. */
  anyForm?: boolean | undefined
  /** With an id, only the code of this notice passes. */
  id?: string | undefined
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

interface Guess extends CodeOwner {
  code: string
  id: string | undefined
  origin: Origin
  /**
   * The key whose same check gets the same pass again, because its answer may have been lost on the way. Only checks with
   * an id repeat, and none in process, where no answer is lost.
   */
  repeatKeyId: string | undefined
}

type Mismatch = Extract<GuessResult, { result: 'mismatch' }>

/** The proof for the caller of a right check. It is made before the guess if the check has an id, because repeats get the same. */
interface Proof {
  verifiedAt: string
  pass: string
}

type Checked = Counted | Repeated

type Counted =
  | Gone
  | ({ result: 'passed'; proof?: string | undefined } & EndedCode)
  | (Mismatch & { lockedForMs?: number })
  | { result: 'refused'; refusal: Refusal }

export function createCheckCaptcha(deps: {
  normaliseRecipient: NormaliseRecipient
  challenges: Pick<Challenges, 'enter' | 'refuse'>
  limits: GuessLimits
  codes: CodeStore
  code: { length: number; own: boolean }
  passes: Pick<Passes, 'issue'>
  known: Pick<KnownBrowsers, 'laneOf' | 'issue'>
  metrics: Pick<Metrics, 'checks'>
  events: Pick<CaptchaEvents, 'passed' | 'ended' | 'locked'>
  testRecipients: Pick<TestRecipients, 'isTestRecipient'>
  /** PostgreSQL's time. */
  nowMs: () => number
  /** Called after each check, for records. Must not throw, and is not awaited. */
  onChecked?: (owner: CodeOwner, requestId: string, checked: Counted) => void
}) {
  const { challenges, limits, codes, passes, known, metrics, events, nowMs } = deps

  /** Throws Unavailable if Redis is out of reach; then no try and no code is used up. */
  return async function checkCaptcha(asked: CheckAsked, caller: Caller): Promise<CheckOutcome> {
    const { channel, scene, code, id } = asked
    const { app } = caller
    const recipient = deps.normaliseRecipient(channel, asked.to)
    if (recipient.kind !== 'ok') return refusedRecipient(recipient)
    const wrongForm = asked.anyForm ? undefined : formProblem(code, deps.code)
    const { to, country } = recipient
    if (wrongForm) {
      const isOfOtherLength = await hasLength({ app, channel, to, scene }, code, id)
      if (isOfOtherLength) return { outcome: 'code_gone', reason: 'expired' }
      return invalidRequest('code', ...wrongForm)
    }
    const lane = await known.laneOf(asked.known, { app, channel, to })
    const origin = originOf(caller, asked.ip, country, lane)
    const repeatKeyId = id === undefined || caller.isInProcess ? undefined : caller.keyId
    const guess = { app, channel, to, scene, code, id, origin, repeatKeyId }
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
        const { result: _, noticeId: __, ...members } = checked
        return { outcome: 'code_mismatch', ...members }
      }
      case 'repeated':
      case 'passed': {
        const proof: Proof = JSON.parse(checked.proof ?? makeProof(guess))
        const ofBrowser = await known.issue(guess, caller, asked.known)
        return { outcome: 'passed', id: checked.noticeId, scene, ...proof, ...ofBrowser }
      }
    }
  }

  function makeProof({ app, scene, channel, to }: Guess): string {
    const pass = passes.issue({ app, scene, channel, to })
    return JSON.stringify({ verifiedAt: new Date(nowMs()).toISOString(), pass } satisfies Proof)
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
    deps.onChecked?.(guess, requestId, checked)
    if (checked.result === 'passed') events.passed(guess, checked.noticeId)
    if ('noticeId' in checked && checked.noticeId) {
      await events.ended(checked.noticeId, checked.result === 'passed' ? 'passed' : 'tries')
    }
    if (checked.result === 'refused') announceLock(guess, checked.refusal)
  }

  function announceLock(guess: Guess, refusal: Refusal): void {
    if (refusal.newLock) events.locked(guess, refusal.newLock)
  }

  async function compare(guess: Guess, requestId: string, isHuman: boolean): Promise<Checked> {
    const live = await codes.look(guess, guess.id)
    if (live.result === 'gone') {
      const { id, code, repeatKeyId } = guess
      const mayRepeat = live.reason === 'used' && id !== undefined && repeatKeyId !== undefined
      const repeated = mayRepeat && (await codes.again(guess, code, id, repeatKeyId))
      return repeated || answerWithoutCode(guess, live.reason, isHuman)
    }
    const { lane } = guess.origin
    const triesLeft = lane === 'known' ? live.knownTriesLeft : live.triesLeft
    if (triesLeft === 0) return answerWithoutCode(guess, 'tries', isHuman)
    const counted = await limits.count(guess, guess.origin, requestId, isHuman)
    if ('refusal' in counted) return { result: 'refused', refusal: counted.refusal }

    let compared: GuessResult
    const { repeatKeyId } = guess
    const proof = repeatKeyId === undefined ? undefined : makeProof(guess)
    const repeatable =
      repeatKeyId === undefined || proof === undefined ? undefined : { keyId: repeatKeyId, proof }
    const passed = (ended: EndedCode) => {
      limits.forgive(counted)
      limits.refund(ended)
    }
    try {
      const onKept = (ended: EndedCode) => {
        passed(ended)
        void record(guess, requestId, { result: 'passed', ...ended })
      }
      compared = await codes.guess(guess, guess.code, guess.id, repeatable, onKept, lane)
    } catch (error) {
      limits.giveBack(counted)
      throw error
    }
    // The code ended after the look-up, so no try was taken.
    if (compared.result === 'gone' || compared.result === 'repeated') limits.giveBack(counted)
    if (compared.result === 'passed') {
      passed(compared)
      return { ...compared, proof }
    }
    if (compared.result !== 'mismatch') return compared
    const { waitMs, refusal } = await limits.holdNext(counted)
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
      (await limits.visit(guess, origin, isHuman)) ?? (await limits.findLock(guess, origin))
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
