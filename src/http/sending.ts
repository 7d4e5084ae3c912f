/**
 * What the two sending routes share: from a checked body to a request the rooms behind can take, and
 * from their refusal to the problem a caller reads.
 */
import { canonicalRecord } from '../base/canonical.ts'
import { orLate } from '../base/deadline.ts'
import { Problem, Unavailable } from '../base/problems.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import { type Refusal, rateLimitHeaders } from '../limiter/index.ts'
import type { Params } from '../notice/create.ts'
import type { SendOutcome } from '../notice/send.ts'
import { maskRecipient } from '../recipient/mask-recipient.ts'
import type { NormaliseRecipient } from '../recipient/normalise-recipient.ts'
import type { Templates } from '../templates/templates.ts'
import type { Answer } from './problem.ts'
import type { RouteRequest } from './route.ts'

/** One normalised recipient, or the problem that says why not. */
export function recipientOf(
  normalise: NormaliseRecipient,
  body: { channel: 'sms' | 'email'; to: string },
): { to: string; country: string } {
  const result = normalise(body.channel, body.to)
  if (result.kind === 'ok') return result
  throw new Problem(result.kind === 'invalid' ? 'invalid_recipient' : 'destination_not_allowed')
}

/** What is known of messages before anybody asks for one. */
export interface Sendable {
  templates: Templates
  /** Channels with at least one route; a message for another could only fail. */
  routedChannels: ReadonlySet<string>
}

/**
 * The locale to render in and the variables it takes, once channel, template and variables are known to
 * fit together. A variable that no edition of the template uses is refused, and one that only another
 * edition uses is left out: the same message with other words behind it would be other content to the
 * duplicate rule.
 */
export function editionOf(
  { templates, routedChannels }: Sendable,
  body: { channel: 'sms' | 'email'; template: string; locale?: string | undefined; params: Params },
  /** Variables Postern adds itself; a caller may not set them. */
  reserved: readonly string[],
): { locale: string; params: Params } {
  const { channel, template } = body
  if (!routedChannels.has(channel)) throw invalid('channel', `no route carries ${channel}`)
  const locale = templates.findLocale(template, channel, body.locale)
  if (!locale) {
    throw invalid(
      'template',
      templates.has(template) ? `has no ${channel} form` : 'there is no such template',
    )
  }
  for (const name of reserved) {
    if (Object.hasOwn(body.params, name)) throw invalid(`params.${name}`, 'is set by Postern')
  }
  const needed = templates.variables(template, channel, locale)
  for (const name of needed) {
    if (!Object.hasOwn(body.params, name) && !reserved.includes(name)) {
      throw invalid(`params.${name}`, 'the template needs it')
    }
  }
  const given = Object.entries(body.params)
  for (const [name] of given) {
    if (!needed.has(name) && !templates.uses(template, name)) {
      throw invalid(`params.${name}`, 'the template does not use it')
    }
  }
  return { locale, params: Object.fromEntries(given.filter(([name]) => needed.has(name))) }
}

export function invalid(path: string, message: string): Problem {
  return new Problem('invalid_request', { errors: [{ path, message }] })
}

/** The 202 of a send, or the problem that refuses it. `more` are the members only this kind of send has. */
export function acceptedAnswer(
  request: RouteRequest,
  outcome: SendOutcome,
  more: Readonly<Record<string, unknown>>,
): Answer | Problem {
  if (!outcome.accepted) return refusalProblem(outcome.policy, outcome.refusal)
  const { id, channel, to, template, expiresAt } = outcome.notice
  request.note({ noticeId: id, channel, template })
  return {
    status: 202,
    headers: { location: `${request.basePath}/v1/notices/${id}` },
    body: {
      id,
      channel,
      to: maskRecipient(channel, to),
      ...more,
      state: 'pending',
      expiresAt: expiresAt.toISOString(),
      resendAt: outcome.resendAt.toISOString(),
    },
  }
}

/** A refusal as a problem. */
export function refusalProblem(policy: string, refusal: Refusal): Problem {
  const { rule, window, retryAfterMs, kind, message } = refusal
  const shared = { policy, rule, retryAfterMs, ...(message ? { message } : {}) }
  return kind === 'lockout'
    ? new Problem('locked', shared)
    : new Problem('limited', { ...shared, window }, rateLimitHeaders(policy, refusal))
}

/** Each attempt's part in the request it belongs to. */
export interface Attempt {
  /** The notice's id. */
  id: string
  /** By `performance.now()`: after it the caller is owed an answer. */
  answerBy: number
}

export interface Sending {
  send(attempt: Attempt): Promise<Answer | Problem>
  /** The answer to what an earlier request made under this id; null if it was not and will not be sent. */
  adopt(attempt: Attempt): Promise<Answer | Problem | null>
}

/** An answer is promised within 2.5 s, whatever is away; between deciding and answering little happens. */
const answerWithinMs = 2_200

/** Sends once per Idempotency-Key; without one, simply sends. */
export function onceByKey(
  idempotency: Idempotency,
  request: RouteRequest,
  what: string,
  sending: Sending,
): Promise<Answer | Problem> {
  const key = request.headers['idempotency-key'] as string | undefined
  const attempt = { id: idempotency.newNoticeId(), answerBy: performance.now() + answerWithinMs }
  return key === undefined
    ? sending.send(attempt)
    : sendOnce(idempotency, request, what, key, sending, attempt)
}

async function sendOnce(
  idempotency: Idempotency,
  request: RouteRequest,
  what: string,
  key: string,
  sending: Sending,
  attempt: Attempt,
): Promise<Answer | Problem> {
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw invalid('Idempotency-Key', 'is 1 to 255 visible ASCII characters')
  }
  const { app } = request
  const asked = `${what} ${canonicalRecord(request.body as Record<string, unknown>)}`
  /** What goes on while the caller is answered. */
  const inTime = <Result>(work: Promise<Result>, late: () => Result) =>
    orLate(work, Math.max(0, attempt.answerBy - performance.now()), late)

  let id = attempt.id
  let answer: Answer | Problem | null = null
  try {
    const reservation = await inTime(idempotency.reserve(app, key, asked, id), () => {
      throw new Unavailable('postgresql', undefined, 'the Idempotency-Key was not reserved in time')
    })
    if (reservation.kind === 'in_progress') return new Problem('idempotency_in_progress')
    if (reservation.kind === 'reused') return new Problem('idempotency_key_reused')
    if (reservation.kind === 'answered') return reservation.answer as Answer
    if (reservation.kind === 'taken_over') {
      id = reservation.earlierId
      answer = await sending.adopt({ ...attempt, id })
      if (!answer) {
        await idempotency.rename(app, key, id, attempt.id)
        id = attempt.id
      }
    }
    answer ??= await sending.send(attempt)
  } catch (error) {
    await inTime(idempotency.free(app, key, id), () => {})
    throw error
  }
  // What was sent is never answered with an error: when this fails, a repeat finds the notice itself.
  await inTime(
    answer instanceof Problem
      ? idempotency.free(app, key, id)
      : idempotency.keep(app, key, id, answer),
    () => {},
  )
  return answer
}
