/**
 * What captchas and notices share at the door: which fields a policy's keys may use, and what the
 * limiter's answer becomes.
 */
import { canonicalRecord } from '../base/canonical.ts'
import type { Secrets } from '../base/secrets.ts'
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
    dedupe: secrets.dedupeHash([notice.to, notice.template, canonicalRecord(params)]),
  }
}
