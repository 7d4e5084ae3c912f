/** The limit checks of captchas and notices: the fields for keys, and the effects of the limiter's decision. */

import { randomUUID } from 'node:crypto'
import { createBoundedMap } from '../base/bounded-map.ts'
import { canonical, canonicalRecord } from '../base/canonical.ts'
import type { Channel } from '../base/channel.ts'
import type { RequestId } from '../base/ids.ts'
import { wideAddress } from '../base/limitable-address.ts'
import { noteInSpan, traced } from '../base/traces.ts'
import type { Decision, Limiter, Policies, Refusal, Rule } from '../limiter/index.ts'
import { addressKindOf } from '../recipient/channels.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import type { Origin } from './caller.ts'
import { fieldsThatAre } from './key-fields.ts'
import { isCheckPolicy, testPolicyOf } from './policies.ts'

export type { Admission, Decision, Refusal } from '../limiter/index.ts'

export type Fields = Readonly<Record<string, string | number>>

/** The facts about a send or check that limits count. */
export interface LimitFacts {
  app: string
  channel: Channel
  to: string
  scene?: string | undefined
}

type Params = Readonly<Record<string, string | number | boolean>>

/** Called after each decision, for records. Must not throw, and is not awaited. */
export type OnDecided = (decided: {
  policy: string
  fields: Fields
  requestId: RequestId
  decision: Decision
  isSolved: boolean
}) => void

/** Refused callers often repeat the same content, and hashing it is a tenth of the cost of a refusal. */
const maxRememberedHashes = 1_000

const ofCaller = fieldsThatAre('ofCaller')

export type Quota = ReturnType<typeof createQuota>

export function createQuota(deps: {
  limiter: Limiter
  /** The keyed hash of a message's content (`Secrets.dedupeHash`). */
  dedupeHash: (parts: readonly string[]) => string
  /** The price of a message, for rules with `permits: price`. */
  priceOf: (channel: Channel, country: string) => number
  isTestRecipient: TestRecipients['isTestRecipient']
  /** The policies in force. */
  policies: () => Policies
  onDecided?: OnDecided
  /** Called after each release. */
  onReleased?: (fields: Fields, requestId: RequestId) => void
}) {
  const { limiter, dedupeHash, priceOf, isTestRecipient, policies, onDecided, onReleased } = deps
  const hashes = createBoundedMap<string>(maxRememberedHashes)
  /** Releases under way. */
  const releases = new Set<Promise<unknown>>()

  function contentHash(channel: Channel, to: string, template: string, params: Params): string {
    const content = canonical([channel, to, template, canonicalRecord(asRendered(params))])
    let hash = hashes.get(content)
    if (hash === undefined) {
      hash = dedupeHash([content])
      hashes.set(content, hash)
    }
    return hash
  }

  /** The values for keys of the policy `check`. */
  function checkFieldsOf(
    asked: LimitFacts,
    { ip, country, keyId, lane = 'stranger' }: Origin,
  ): Fields {
    const { to, channel, scene = '', app } = asked
    const kind = addressKindOf(channel)
    const [prefix, block, mailbox] = [kind.prefixOf(to), kind.blockOf(to), kind.mailboxOf(to)]
    const ipWide = wideAddress(ip)
    const ofPerson = { ip, ipWide, country, keyId, lane }
    return { to, channel, scene, app, prefix, block, mailbox, ...ofPerson }
  }

  const isTest = ({ to }: Fields) => isTestRecipient(String(to))
  /** The policy that decides: for a test recipient its variant, if it has one (policies-in-force.ts). */
  function policyFor(policy: string, fields: Fields): string {
    if (!isTest(fields) || isCheckPolicy(policy)) return policy
    const variant = testPolicyOf(policy)
    return Object.hasOwn(policies(), variant) ? variant : policy
  }

  /**
   * Takes a use from every rule of the policy, or from none. The uses can be given back by the request id. The id is
   * new, so the limiter may answer a flood from its memory of refusals.
   *
   * `isSolved`: rules in mode challenge admit the request. `isSilent`: not a caller's request, so no metric counts it.
   * Decisions about test recipients are not recorded.
   */
  async function acquire(
    policy: string,
    fields: Fields,
    requestId: RequestId,
    isSolved = true,
    isSilent = false,
    isNewRequest = true,
  ): Promise<Decision> {
    const options = { requestId, isNewRequest, isSolved, isSilent }
    const limits = {
      name: 'limits',
      kind: 'INTERNAL',
      attributes: { 'postern.policy': policy },
    } as const
    const decision = await traced(limits, async () => {
      const decided = await limiter.acquire(policyFor(policy, fields), fields, options)
      if (!decided.admitted) noteInSpan({ 'postern.rule': decided.rule })
      return decided
    })
    if (!isTest(fields)) onDecided?.({ policy, fields, requestId, decision, isSolved })
    return decision
  }

  /** Gives back uses, now or when Redis answers again. With `rules`, only the uses of those rules. */
  function release(
    policy: string,
    fields: Fields,
    requestId: RequestId,
    rules?: readonly string[],
  ): void {
    if (!rules && !isTest(fields)) onReleased?.(fields, requestId)
    const releasing = limiter
      .release(policyFor(policy, fields), fields, requestId, rules)
      .catch(() => {})
      .then(() => void releases.delete(releasing))
    releases.add(releasing)
  }

  return {
    checkFieldsOf,

    /** The values for keys of the policies `captcha` and `notice`. */
    fieldsOf(draft: LimitFacts & { template: string }, params: Params, origin: Origin): Fields {
      const { to, channel, template } = draft
      const dedupe = contentHash(channel, to, template, params)
      const price = priceOf(channel, origin.country)
      return { ...checkFieldsOf(draft, origin), template, dedupe, price }
    },

    acquire,
    release,

    /** The same for a request that may have taken its uses before. They are taken once. */
    acquireOnce: (policy: string, fields: Fields, requestId: RequestId, isSolved: boolean) =>
      acquire(policy, fields, requestId, isSolved, false, false),

    /**
     * Gives back the uses of a send to an address that does not exist, except for rules on the caller. Otherwise a caller
     * could try addresses without limit.
     */
    releaseUnsent(policy: string, fields: Fields, requestId: RequestId): void {
      const rules = policies()[policyFor(policy, fields)] ?? []
      const isOfCaller = (rule: Rule) => rule.fields.some((name) => ofCaller.includes(name))
      const names = rules.filter((rule) => !isOfCaller(rule)).map(({ name }) => name)
      if (names.length > 0) release(policy, fields, requestId, [...new Set(names)])
    },

    /**
     * Takes the uses of such a request and gives them back. Returns the refusal, which metrics count. A lockout that has
     * reached its limit begins its lock.
     */
    async acquireAndRelease(
      policy: string,
      fields: Fields,
      isSolved: boolean,
      isSilent = false,
    ): Promise<Refusal | undefined> {
      const requestId = randomUUID()
      const decision = await acquire(policy, fields, requestId, isSolved, isSilent)
      if (!decision.admitted) return decision
      release(policy, fields, requestId)
      return undefined
    },

    /** True if this process remembers a refusal of such a request. Calls no server, and counts nothing. */
    remembersRefusal: (policy: string, fields: Fields, isSolved: boolean): boolean =>
      limiter.recall(policyFor(policy, fields), fields, { isSolved }) !== undefined,

    /** Milliseconds until the limits admit such a request. */
    async nextInMs(policy: string, fields: Fields): Promise<number> {
      const windows = await limiter.peek(policyFor(policy, fields), fields)
      return Math.max(0, ...windows.map(({ nextInMs }) => nextInMs))
    },

    /** Resolves when all releases under way have ended. */
    async close(): Promise<void> {
      await Promise.all(releases)
    },
  }
}

/** A template shows 7 and "7" in the same way, so both are the same content. */
function asRendered(params: Params): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]))
}
