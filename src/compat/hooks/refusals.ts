/** The answers for a code that was not sent. */
import { shownFieldErrors } from '../../base/field-errors.ts'
import { detailOf } from '../../base/problem-detail.ts'
import { Problem, problems } from '../../base/problems.ts'
import { Overloaded } from '../../base/unavailable.ts'
import { words } from '../../base/words.ts'
import type { PosternCalls } from '../../http/in-process.ts'

type NotSent = Exclude<Awaited<ReturnType<PosternCalls['sendCaptcha']>>, { outcome: 'accepted' }>

/** Throws Overloaded, a 503 that is no error, if an earlier call of this message is not answered yet. */
export function problemOf(refused: NotSent): Problem {
  const { outcome, ...members } = refused
  switch (refused.outcome) {
    case 'idempotency_in_progress':
      throw new Overloaded('postgresql', 'an earlier call of this message is not answered yet')
    case 'unavailable':
      return new Problem('unavailable', {}, { 'Retry-After': '2' })
    case 'limited':
    case 'locked': {
      const { policy, rule, window, outcome, ...shown } = refused
      const violated = { 'violated-policies': [`${policy}/${rule} ${window}`], policy, rule }
      const more = outcome === 'limited' ? { window } : {}
      return new Problem(outcome, { ...violated, ...more, ...shown })
    }
    case 'invalid_recipient':
      return new Problem('invalid_recipient', {}, {}, refused.because)
    default:
      return new Problem(outcome as typeof refused.outcome, members)
  }
}

/** For products that treat any status but 200 as a fault of the hook. They show the message to the person. */
export function refusalIn200(problem: Problem): object {
  const { status } = problems[problem.code]
  const { errors } = problem.members as { errors?: Parameters<typeof shownFieldErrors>[0] }
  const message = errors ? faultsInWords(errors) : detailOf(problem, 'en')
  return { error: { http_code: status, message } }
}

/** The detail of such a problem points to a list, which these answers do not have. */
function faultsInWords(errors: Parameters<typeof shownFieldErrors>[0]): string {
  const { title } = words.en.problems.invalid_request
  const faults = shownFieldErrors(errors).map(
    ({ path, message }) => `${path || 'This message'} ${message}.`,
  )
  return [`${title}.`, ...faults].join(' ')
}
