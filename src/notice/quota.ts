/**
 * What captchas and notices share at the door: which fields a policy's keys may use, and what the
 * limiter's answer becomes.
 */

import { createBoundedMap } from '../base/bounded-map.ts'
import { canonical, canonicalRecord } from '../base/canonical.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Decision, Limiter } from '../limiter/index.ts'
import type { NoticeDraft, Params } from './create.ts'

/** Facts of a request that only limits look at. */
export interface Origin {
  /** The address the request came from, after the trusted proxies. */
  ip: string
  /** ISO 3166 code of a phone number; empty for email and for numbers of no country. */
  country: string
}

type Fields = Readonly<Record<string, string>>

/** A caller that is refused comes again with the same content, and hashing is a tenth of what a refusal costs. */
const maxRememberedHashes = 1_000

export type Quota = ReturnType<typeof createQuota>

export function createQuota(deps: { limiter: Limiter; secrets: Secrets }) {
  const { limiter, secrets } = deps
  const hashes = createBoundedMap<string>(maxRememberedHashes)

  function dedupeHash(to: string, template: string, params: Params): string {
    const content = canonical([to, template, canonicalRecord(asRendered(params))])
    let hash = hashes.get(content)
    if (hash === undefined) {
      hash = secrets.dedupeHash([content])
      hashes.set(content, hash)
    }
    return hash
  }

  return {
    /** The values for `{to} {channel} {scene} {app} {ip} {country} {template} {dedupe}` in a rule's key. */
    fieldsOf(draft: NoticeDraft, params: Params, { ip, country }: Origin): Fields {
      const { to, channel, scene = '', app, template } = draft
      const dedupe = dedupeHash(to, template, params)
      return { to, channel, scene, app, ip, country, template, dedupe }
    },

    /**
     * Takes from every rule of the policy, or from none, under an id by which it can be given back. A flood
     * is answered from the limiter's memory of refusals, because the id was made for this request.
     */
    acquire: (policy: string, fields: Fields, requestId: string): Promise<Decision> =>
      limiter.acquire(policy, fields, { requestId, isNewRequest: true }),

    /** Now, or when Redis answers again. */
    release(policy: string, fields: Fields, requestId: string): void {
      limiter.release(policy, fields, requestId).catch(() => {})
    },

    /** How long from now until the limits admit such a request. */
    async nextInMs(policy: string, fields: Fields): Promise<number> {
      const windows = await limiter.peek(policy, fields)
      return Math.max(0, ...windows.map(({ nextInMs }) => nextInMs))
    },
  }
}

/** A template shows 7 and "7" alike, so they are the same content. */
function asRendered(params: Params): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]))
}
