/**
 * What the two sending routes share: from a checked body to a request the rooms behind can take, and
 * from their refusal to the problem a caller reads.
 */
import { canonicalRecord } from '../base/canonical.ts'
import { newId } from '../base/ids.ts'
import { maskRecipient } from '../base/mask-recipient.ts'
import { Problem } from '../base/problems.ts'
import { rateLimitHeaders } from '../limiter/index.ts'
import type { AcceptOutcome } from '../notice/accept.ts'
import type { AdmissionRefusal } from '../notice/admission.ts'
import type { Params, ReservedNotice } from '../notice/create.ts'
import type { Idempotency } from '../notice/idempotency.ts'
import type { Templates } from '../templates/templates.ts'
import type { Answer } from './problem.ts'
import type { NormaliseRecipient } from './recipient.ts'
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
  outcome: AcceptOutcome,
  more: Readonly<Record<string, unknown>>,
): Answer | Problem {
  if (!outcome.accepted) return refusalProblem(outcome.policy, outcome.refusal)
  const { id, channel, to, template, expiresAt } = outcome.notice
  request.note({ noticeId: id, channel, template })
  return {
    status: 202,
    headers: { location: `/v1/notices/${id}` },
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
export function refusalProblem(policy: string, refusal: AdmissionRefusal): Problem {
  const { rule, window, retryAfterMs, kind, message } = refusal
  const shared = { policy, rule, retryAfterMs, ...(message ? { message } : {}) }
  const problem =
    kind === 'lockout'
      ? new Problem('locked', shared)
      : new Problem('limited', { ...shared, window }, rateLimitHeaders(policy, refusal))
  problem.isRepeat = refusal.isRepeat
  return problem
}

type Send = (reserved: ReservedNotice | undefined) => Promise<Answer | Problem>

/** Runs `send` once per Idempotency-Key; without one, simply runs it. */
export function onceByKey(
  idempotency: Idempotency,
  request: RouteRequest,
  what: string,
  send: Send,
): Promise<Answer | Problem> {
  const key = request.headers['idempotency-key'] as string | undefined
  return key === undefined ? send(undefined) : sendOnce(idempotency, request, what, key, send)
}

async function sendOnce(
  idempotency: Idempotency,
  request: RouteRequest,
  what: string,
  key: string,
  send: Send,
): Promise<Answer | Problem> {
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw invalid('Idempotency-Key', 'is 1 to 255 visible ASCII characters')
  }
  const asked = `${what} ${canonicalRecord(request.body as Record<string, unknown>)}`
  const offeredId = newId()
  const reservation = await idempotency.reserve(request.app, key, asked, offeredId)
  if (reservation.kind === 'in_progress') throw new Problem('idempotency_in_progress')
  if (reservation.kind === 'reused') throw new Problem('idempotency_key_reused')
  if (reservation.kind === 'answered') return reservation.answer as Answer
  const id = reservation.noticeId
  const drop = () => idempotency.drop(request.app, key).catch(() => {})
  let answer: Answer | Problem
  try {
    answer = await send({ id, isTakenOver: id !== offeredId })
  } catch (error) {
    await drop()
    throw error
  }
  if (answer instanceof Problem) {
    await drop()
    return answer
  }
  // What was sent is never answered with an error: when this fails, a repeat finds the notice itself.
  await idempotency.keep(request.app, key, answer).catch(() => {})
  return answer
}
