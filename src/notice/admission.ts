/**
 * What captchas and notices share at the door: which fields a policy's keys may use, and what the
 * limiter's answer becomes.
 */
import { canonicalRecord } from '../base/canonical.ts'
import type { Secrets } from '../base/secrets.ts'
import type { Admission, RedisLimiter, Refusal } from '../limiter/index.ts'
import type { Params, PreparedNotice } from './create.ts'

/** Facts of a request that only limits look at. */
export interface Origin {
  /** The caller's address, after the trusted proxies. */
  ip: string
  /** ISO 3166 code of a phone number; empty for email and for numbers of no country. */
  country: string
}

/** The values for `{to} {channel} {scene} {app} {ip} {country} {template} {dedupe}` in a rule's key. */
export function limitFields(
  notice: PreparedNotice,
  params: Params,
  origin: Origin,
  secrets: Secrets,
): Record<string, string> {
  return {
    to: notice.to,
    channel: notice.channel,
    scene: notice.scene ?? '',
    app: notice.app,
    ip: origin.ip,
    country: origin.country,
    template: notice.template,
    dedupe: secrets.dedupeHash([notice.to, notice.template, canonicalRecord(asRendered(params))]),
  }
}

/** A template shows 7 and "7" alike, so they are the same content. */
function asRendered(params: Params): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]))
}

/**
 * Asks the limiter for a new request. A flood is answered from the memory of refusals; only what may
 * be admitted reaches Redis, under an id by which it can be given back.
 */
export async function admit(
  limiter: RedisLimiter,
  policy: string,
  fields: Record<string, string>,
  requestId: string,
): Promise<Admission | AdmissionRefusal> {
  const known = limiter.recall(policy, fields)
  if (known) return { ...known, isRepeat: true }
  const decision = await limiter.acquire(policy, fields, { requestId })
  return decision.admitted ? decision : { ...decision, isRepeat: false }
}

export interface AdmissionRefusal extends Refusal {
  /** The same refusal as before, from memory. */
  readonly isRepeat: boolean
}

/**
 * How long after this admission the limits will admit the same request again; 0 when they would at
 * once. A window of one use says so by itself; only for a larger one that is now full, Redis is asked.
 */
export async function nextAdmissionInMs(
  limiter: RedisLimiter,
  policy: string,
  fields: Record<string, string>,
  admission: Admission,
): Promise<number> {
  const isFull = admission.remaining.map(({ left }) => left === 0)
  const full = limiter.windows(policy).filter((_, index) => isFull[index])
  if (full.every(({ limit, windowMs }) => limit === 1 && windowMs !== undefined)) {
    return Math.max(0, ...full.map(({ windowMs = 0 }) => windowMs))
  }
  // The send is accepted whatever becomes of this look; the longest window is never too early.
  const longestMs = Math.max(0, ...full.map(({ windowMs = 0 }) => windowMs))
  return peekNextInMs(limiter, policy, fields).catch(() => longestMs)
}

/** How long from now until the limits admit such a request. */
export async function peekNextInMs(
  limiter: RedisLimiter,
  policy: string,
  fields: Record<string, string>,
): Promise<number> {
  const windows = await limiter.peek(policy, fields)
  return Math.max(0, ...windows.map(({ nextInMs }) => nextInMs))
}
