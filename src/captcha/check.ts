/**
 * Checks a code. The guess is counted before it is compared, twice: by the limiter, whose budget
 * survives resends, and with the code itself, whose tries end it.
 */
import { randomUUID } from 'node:crypto'
import type { Limiter, Policies, Refusal, Rule } from '../limiter/index.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Fields, Origin, Quota } from '../notice/quota.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import type { CaptchaEvents } from './captcha-events.ts'
import type { CodeOwner, CodeStore, GuessResult } from './code-store.ts'
import type { Refund } from './send.ts'

export interface CheckRequest extends CodeOwner {
  code: string
  /** Only the code of this very notice passes. */
  id?: string
  origin: Origin
}

export type CheckOutcome = GuessResult | { result: 'refused'; refusal: Refusal }

export type CheckCaptcha = ReturnType<typeof createCheckCaptcha>

export function createCheckCaptcha(deps: {
  quota: Quota
  limiter: Limiter
  /** The rules as they are now. */
  policies: () => Policies
  codes: CodeStore
  metrics: Metrics
  events: CaptchaEvents
  testRecipients: Pick<TestRecipients, 'isTestRecipient'>
  /** For those who keep a record. Must not throw, and is not waited for. */
  onChecked?: (request: CheckRequest, requestId: string, outcome: CheckOutcome) => void
}) {
  const { quota, limiter, policies, codes, metrics, events, testRecipients, onChecked } = deps

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
    if (outcome.result === 'refused' && outcome.refusal.isNewLock) {
      void events.locked(request, outcome.refusal)
    }
    return outcome
  }

  async function check(
    request: CheckRequest,
    requestId: string,
    isHuman: boolean,
  ): Promise<CheckOutcome> {
    const fields = quota.checkFieldsOf(request, request.origin)
    const decision = await quota.acquire('check', fields, requestId, isHuman)
    if (!decision.admitted) return { result: 'refused', refusal: decision }

    let guess: GuessResult
    try {
      guess = await codes.guess(request, request.code, request.id)
    } catch (error) {
      quota.release('check', fields, requestId)
      throw error
    }
    // The next request of this person comes after this one on the same connection: no need to wait.
    if (guess.result === 'passed') forgive(fields, requestId).catch(() => {})
    if (guess.result === 'passed' && guess.onPass) {
      giveBack(guess.noticeId, guess.onPass).catch(() => {})
    }
    return guess
  }

  /** What the code's send took from rules with `refund: passed`. The code has passed, whatever comes of this. */
  async function giveBack(noticeId: string, refund: string): Promise<void> {
    const { policy, fields } = JSON.parse(refund) as Refund
    await limiter.refund(policy, fields, noticeId)
  }

  /**
   * A right code is no guess, so no lock-out counts it, nor a rule that asks for a challenge: that is a budget
   * of guesses, and an owner who signs in often has none the fewer. Earlier misses are forgiven only by lock-outs
   * about this recipient: an attacker can pass with a number of their own, and must not win back guesses
   * at the numbers of others; and a budget that each sign-in filled up again would be none. Other rules count
   * successes like any use.
   */
  async function forgive(fields: Fields, requestId: string): Promise<void> {
    const rules = policies().check ?? []
    const isCleared = (rule: Rule) => rule.kind === 'lockout' && rule.fields.includes('to')
    const isUncounted = (rule: Rule) => rule.kind === 'lockout' || rule.mode === 'challenge'
    const namesOf = (wanted: (rule: Rule) => boolean) =>
      rules.filter(wanted).map(({ name }) => name)
    const others = namesOf((rule) => isUncounted(rule) && !isCleared(rule))
    if (others.length > 0) quota.release('check', fields, requestId, others)
    await Promise.all(namesOf(isCleared).map((rule) => limiter.reset('check', fields, rule)))
  }
}
