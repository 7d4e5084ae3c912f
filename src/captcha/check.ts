/**
 * Checks a code. The guess is counted before it is compared, twice: by the limiter, whose budget
 * survives resends, and with the code itself, whose tries end it.
 */
import { createShortIds } from '../base/ids.ts'
import type { RedisLimiter } from '../limiter/index.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Admission, AdmissionRefusal } from '../notice/admission.ts'
import type { AnnounceCaptcha } from './announce.ts'
import type { CodeOwner, CodeStore, GuessResult } from './code-store.ts'

export interface CheckRequest extends CodeOwner {
  code: string
  /** Only the code of this very notice passes. */
  id?: string
  ip: string
  country: string
}

export type CheckOutcome = GuessResult | { result: 'refused'; refusal: AdmissionRefusal }

export type CheckCaptcha = ReturnType<typeof createCheckCaptcha>

export function createCheckCaptcha(deps: {
  admission: Admission
  limiter: RedisLimiter
  codes: CodeStore
  metrics: Metrics
  announce: AnnounceCaptcha
}) {
  const { admission, limiter, codes, metrics, announce } = deps
  const newRequestId = createShortIds()

  return async function checkCaptcha(request: CheckRequest): Promise<CheckOutcome> {
    const outcome = await check(request)
    metrics.checks.inc({ result: outcome.result })
    if (outcome.result === 'passed') announce.passed(request, outcome.noticeId)
    if (outcome.result === 'refused' && isNewLock(outcome.refusal)) {
      void announce.locked(request, outcome.refusal)
    }
    return outcome
  }

  async function check(request: CheckRequest): Promise<CheckOutcome> {
    const { channel, to, scene, app, ip, country } = request
    const fields = { channel, to, scene, app, ip, country }
    const repeat = admission.recall('check', fields)
    if (repeat) return { result: 'refused', refusal: repeat }
    const requestId = newRequestId()
    const verdict = await admission.admit('check', fields, requestId)
    if (!verdict.admitted) return { result: 'refused', refusal: verdict }

    let guess: GuessResult
    try {
      guess = await codes.guess(request, request.code, request.id)
    } catch (error) {
      await admission.giveBack('check', fields, requestId)
      throw error
    }
    // Whoever knows the code is not guessing: earlier misses no longer count against them. Their next
    // request comes after this one on the same connection, so nobody has to wait for it.
    if (guess.result === 'passed') forgive(fields).catch(() => {})
    return guess
  }

  /** Clears the lock-outs of the policy; its other rules count successes like any use. */
  async function forgive(fields: Record<string, string>): Promise<void> {
    const lockouts = limiter.windows('check').filter(({ kind }) => kind === 'lockout')
    await Promise.all(lockouts.map(({ rule }) => limiter.reset('check', fields, rule)))
  }
}

const isNewLock = ({ kind, isRepeat }: AdmissionRefusal) => kind === 'lockout' && !isRepeat
