/**
 * Checks a code. The guess is counted before it is compared, twice: by the limiter, whose budget survives resends, and
 * with the code itself, whose tries end it.
 *
 * Only what can be compared is a guess. Where no code lives nothing is counted about the recipient, nothing locks,
 * and nobody hears of it: a stranger with a page's key could otherwise lock out, report and fill the memory with
 * recipients of their choice. Such a caller's own rules (`browser.checkRules`) count it all the same.
 */
import { randomUUID } from 'node:crypto'
import type { Metrics } from '../metrics/metrics.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import type { CheckLimits } from '../rules/check-limits.ts'
import type { Admission, Origin, Quota, Refusal } from '../rules/quota.ts'
import type { CaptchaEvents } from './captcha-events.ts'
import type { CodeOwner, CodeStore, GuessResult } from './code-store.ts'

export interface CheckRequest extends CodeOwner {
  code: string
  /** Only the code of this very notice passes. */
  id?: string
  origin: Origin
}

type Mismatch = Extract<GuessResult, { result: 'mismatch' }>

export type CheckOutcome =
  | Exclude<GuessResult, Mismatch>
  /** `lockedForMs`: this guess used up what the limits allow, and none is compared for so long. */
  | (Mismatch & { lockedForMs?: number })
  | { result: 'refused'; refusal: Refusal }

export type CheckCaptcha = ReturnType<typeof createCheckCaptcha>

export function createCheckCaptcha(deps: {
  quota: Quota
  limits: CheckLimits
  codes: CodeStore
  metrics: Metrics
  events: CaptchaEvents
  testRecipients: Pick<TestRecipients, 'isTestRecipient'>
  /** For those who keep a record. Must not throw, and is not waited for. */
  onChecked?: (request: CheckRequest, requestId: string, outcome: CheckOutcome) => void
}) {
  const { quota, limits, codes, metrics, events, testRecipients, onChecked } = deps

  /** `isHuman`: rules that ask for a challenge let it pass. */
  return async function checkCaptcha(request: CheckRequest, isHuman = true): Promise<CheckOutcome> {
    const requestId = randomUUID()
    const outcome = await check(request, requestId, isHuman)
    const isTest = testRecipients.isTestRecipient(request.channel, request.to)
    // Whoever knows the code of one could hide wrong guesses elsewhere among right ones here.
    if (isTest && outcome.result === 'passed') return outcome
    metrics.checks.inc({ result: outcome.result })
    onChecked?.(request, requestId, outcome)
    if (outcome.result === 'passed') events.passed(request, outcome.noticeId)
    if (outcome.result === 'refused') announceLock(request, outcome.refusal)
    return outcome
  }

  function announceLock(request: CheckRequest, refusal: Refusal): void {
    if (refusal.isNewLock) void events.locked(request, refusal)
  }

  async function check(
    request: CheckRequest,
    requestId: string,
    isHuman: boolean,
  ): Promise<CheckOutcome> {
    const live = await codes.look(request, request.id)
    if (!live || live.triesLeft === 0) return answerWithoutCode(request, isHuman)
    const { policy, fields } = limits.guessOf(request, request.origin)
    const decision = await quota.acquire(policy, fields, requestId, isHuman)
    if (!decision.admitted) return { result: 'refused', refusal: decision }

    let guess: GuessResult
    try {
      guess = await codes.guess(request, request.code, request.id)
    } catch (error) {
      quota.release(policy, fields, requestId)
      throw error
    }
    // It ended since it was looked for, so nothing was compared.
    if (guess.result === 'gone') quota.release(policy, fields, requestId)
    // The next request of this person comes after this one on the same connection: no need to wait.
    if (guess.result === 'passed') limits.forgive(policy, fields, requestId).catch(() => {})
    if (guess.result === 'passed' && guess.onPass) {
      limits.refund(guess.onPass, guess.noticeId).catch(() => {})
    }
    if (guess.result !== 'mismatch' || decision.nextInMs === 0) return guess
    const lockedForMs = await lockAfter(request, decision)
    return lockedForMs > 0 ? { ...guess, lockedForMs } : guess
  }

  async function answerWithoutCode(request: CheckRequest, isHuman: boolean): Promise<CheckOutcome> {
    const { origin } = request
    const refusal = await limits.visit(request, origin, isHuman)
    if (refusal) return { result: 'refused', refusal }
    const lock = await limits.findLock(request, origin)
    return lock ? { result: 'refused', refusal: lock } : { result: 'gone' }
  }

  /** 0 when another guess may follow, or when that can't be said: this one was compared and counted all the same. */
  async function lockAfter(request: CheckRequest, admission: Admission): Promise<number> {
    try {
      const { waitMs, refusal } = await limits.holdAfter(request, request.origin, admission)
      if (refusal) announceLock(request, refusal)
      return waitMs
    } catch {
      return 0
    }
  }
}
