/**
 * What captchas and notices share at the door: which fields a policy's keys may use, and what the
 * limiter's answer becomes.
 */

import { randomUUID } from 'node:crypto'
import { createBoundedMap } from '../base/bounded-map.ts'
import { canonical, canonicalRecord } from '../base/canonical.ts'
import type { Channel } from '../base/channel.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Decision, Limiter, Refusal } from '../limiter/index.ts'
import { mailboxOf, prefixOf } from '../recipient/facets.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import { testPolicyOf } from './policies.ts'

export type { Admission, Decision, Refusal } from '../limiter/index.ts'

/** Who asks: the holder of an API key, or the host in process. */
export interface Caller {
  app: string
  keyId: string
  /** The address the request came from, after the trusted proxies. */
  ip: string
  /** Its key may stand in a page: the rules for pages hold too, and it can be asked for a challenge. */
  isPage: boolean
  /** Of the pages that may use the key. */
  origins: readonly string[]
}

/** Facts of a request that only limits look at. */
export interface Origin {
  /** The address of the person who asked: the caller's, or the one that a server names. */
  ip: string
  /** ISO 3166 code of a phone number; empty for email and for numbers of no country. */
  country: string
  keyId: string
  /** As in `Caller`. */
  isPage: boolean
}

/** `ip`: the address that a server names for the person who asked. */
export function originOf(caller: Caller, ip: string | undefined, country: string): Origin {
  return { ip: ip ?? caller.ip, country, keyId: caller.keyId, isPage: caller.isPage }
}

export type Fields = Readonly<Record<string, string | number>>

/** Who is checked or sent to, by whom, as far as limits count it. */
export interface Asked {
  app: string
  channel: Channel
  to: string
  scene?: string | undefined
}

type Params = Readonly<Record<string, string | number | boolean>>

/** What has been decided, for those who keep a record. Must not throw, and is not waited for. */
export type OnDecided = (decided: {
  policy: string
  fields: Fields
  requestId: string
  decision: Decision
  isSolved: boolean
}) => void

/** A caller that is refused comes again with the same content, and hashing is a tenth of what a refusal costs. */
const maxRememberedHashes = 1_000

export type Quota = ReturnType<typeof createQuota>

export function createQuota(deps: {
  limiter: Limiter
  secrets: Secrets
  /** What a message costs, for rules with `permits: price`. */
  priceOf: (channel: Channel, country: string) => number
  isTestRecipient: TestRecipients['isTestRecipient']
  onDecided?: OnDecided
  /** The same for what is given back. */
  onReleased?: (fields: Fields, requestId: string) => void
}) {
  const { limiter, secrets, priceOf, isTestRecipient, onDecided, onReleased } = deps
  const hashes = createBoundedMap<string>(maxRememberedHashes)
  /** What is being given back. */
  const releases = new Set<Promise<unknown>>()

  function dedupeHash(to: string, template: string, params: Params): string {
    const content = canonical([to, template, canonicalRecord(asRendered(params))])
    let hash = hashes.get(content)
    if (hash === undefined) {
      hash = secrets.dedupeHash([content])
      hashes.set(content, hash)
    }
    return hash
  }

  /** The values that keys of the policy `check` may use. */
  function checkFieldsOf(asked: Asked, { ip, country, keyId }: Origin): Fields {
    const { to, channel, scene = '', app } = asked
    const [prefix, mailbox] = [prefixOf(channel, to), mailboxOf(channel, to)]
    return { to, channel, scene, app, ip, country, prefix, mailbox, keyId }
  }

  const isTest = ({ channel, to }: Fields) => isTestRecipient(channel as Channel, String(to))
  const asked = (policy: string, fields: Fields) => (isTest(fields) ? testPolicyOf(policy) : policy)

  /**
   * Takes from every rule of the policy, or from none, under an id by which it can be given back. A flood
   * is answered from the limiter's memory of refusals, because the id was made for this request.
   * `isSolved`: rules that ask for a challenge let it pass. Of what is decided about test recipients no
   * record is kept. `isSilent`: no request of a caller's, so no metric counts it.
   */
  async function acquire(
    policy: string,
    fields: Fields,
    requestId: string,
    isSolved = true,
    isSilent = false,
  ): Promise<Decision> {
    const options = { requestId, isNewRequest: true, isSolved, isSilent }
    const decision = await limiter.acquire(asked(policy, fields), fields, options)
    if (!isTest(fields)) onDecided?.({ policy, fields, requestId, decision, isSolved })
    return decision
  }

  /** Now, or when Redis answers again; with `rules`, what was taken from those. */
  function release(
    policy: string,
    fields: Fields,
    requestId: string,
    rules?: readonly string[],
  ): void {
    if (!rules && !isTest(fields)) onReleased?.(fields, requestId)
    const releasing = limiter
      .release(asked(policy, fields), fields, requestId, rules)
      .catch(() => {})
      .then(() => void releases.delete(releasing))
    releases.add(releasing)
  }

  return {
    checkFieldsOf,

    /** The values that keys of the policies `captcha` and `notice` may use. */
    fieldsOf(draft: Asked & { template: string }, params: Params, origin: Origin): Fields {
      const { to, channel, template } = draft
      const dedupe = dedupeHash(to, template, params)
      const price = priceOf(channel, origin.country)
      return { ...checkFieldsOf(draft, origin), template, dedupe, price }
    },

    acquire,
    release,

    /**
     * The refusal of such a request, which is counted as one; undefined when it would be admitted after all, and nothing
     * is taken then.
     */
    async findRefusal(
      policy: string,
      fields: Fields,
      isSolved = true,
      isSilent = false,
    ): Promise<Refusal | undefined> {
      const requestId = randomUUID()
      const decision = await acquire(policy, fields, requestId, isSolved, isSilent)
      if (!decision.admitted) return decision
      release(policy, fields, requestId)
      return undefined
    },

    /** This process remembers that the limits refuse such a request. Asks no server, and counts nothing. */
    isRefused: (policy: string, fields: Fields, isSolved: boolean): boolean =>
      limiter.recall(asked(policy, fields), fields, { isSolved }) !== undefined,

    /** How long from now until the limits admit such a request. */
    async nextInMs(policy: string, fields: Fields): Promise<number> {
      const windows = await limiter.peek(policy, fields)
      return Math.max(0, ...windows.map(({ nextInMs }) => nextInMs))
    },

    /** Resolves when what is being given back has been. */
    async close(): Promise<void> {
      await Promise.all(releases)
    },
  }
}

/** A template shows 7 and "7" alike, so they are the same content. */
function asRendered(params: Params): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]))
}
