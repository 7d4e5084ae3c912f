/**
 * Known browsers. A right code gives its browser a token. Later requests of that browser for the same recipient, by any
 * channel to that address, are in the lane `known`. All others are in the lane `stranger`. Rules can count by lane, and a
 * code has its tries once per lane. So a stranger who uses up the limits of a recipient does not touch its owner.
 *
 * All known browsers of a recipient share one lane: a recipient costs at most twice its limits, also if its owner types
 * right codes to get more. A token is a compact JWS that lives 180 days. Its times are by the clock of Redis, which is the
 * same for every process. Redis also has the time of the latest reset, which ends all earlier tokens of a recipient.
 */
import { compactVerify } from 'jose'
import type { Channel } from '../base/channel.ts'
import { orLate } from '../base/deadline.ts'
import { parseObject } from '../base/json.ts'
import { loadScript, type RedisClient } from '../base/redis-script.ts'
import { reachRedis } from '../base/unavailable.ts'
import type { Secrets } from '../crypto/secrets.ts'
import { firstChannelTo } from '../recipient/channels.ts'
import type { Caller, Lane } from '../rules/caller.ts'
import { createSigningKeys, issuer } from './signing-keys.ts'

export interface Recipient {
  app: string
  channel: Channel
  to: string
}

export type KnownBrowsers = Awaited<ReturnType<typeof createKnownBrowsers>>

const typ = 'known+jwt'
const lifeSeconds = 180 * 86_400
/** Resets in one second run ahead of the clock. */
const resetLifeSeconds = lifeSeconds + 3_600

const tokenWithinMs = 500

const script = loadScript('known-resets-1')

export async function createKnownBrowsers(deps: {
  redis: RedisClient
  keyPrefix: string
  secrets: Pick<Secrets, 'knownSeeds' | 'passSubjects' | 'subjectHashes'>
}) {
  const { redis, keyPrefix, secrets } = deps
  const keys = await createSigningKeys(secrets.knownSeeds)

  /** The claims of a token that these keys have signed. */
  async function read(token: string) {
    // A header of another type names none of the keys.
    const keyOf = (header: { kid?: string; typ?: string }) =>
      keys.publicKeyOf(header.typ === typ ? header : {})
    try {
      const { payload } = await compactVerify(token, keyOf, { algorithms: ['ES256'] })
      return parseObject(Buffer.from(payload).toString())
    } catch {
      return undefined
    }
  }

  /**
   * Redis' time and the time of the latest reset, both in seconds since 1970. With `keepSeconds`, the reset is made now and
   * stored for that time.
   */
  async function timesOf({ app, channel, to }: Recipient, keepSeconds = 0) {
    // While the secret is rotated, a process may know only one of the two names.
    const names = secrets.subjectHashes(['known', app, firstChannelTo(channel), to])
    const answers = names.map((name) =>
      reachRedis(script.run(redis, [`${keyPrefix}known:${name}`], [keepSeconds])),
    )
    const times = (await Promise.all(answers)) as [now: number, reset: number][]
    return { now: times[0]?.[0] ?? 0, reset: Math.max(...times.map(([, reset]) => reset)) }
  }

  return {
    /**
     * The lane of a request. A token names one address, so it counts only if the request is about no other. Otherwise a
     * stranger could name an own address beside a foreign one, and count in the lane of its owner. A token that is not valid
     * is no error. Throws Unavailable if Redis does not answer about a signed token.
     */
    async laneOf(
      token: string | true | undefined,
      ...recipients: readonly Recipient[]
    ): Promise<Lane> {
      const claims = typeof token === 'string' ? await read(token) : undefined
      if (!claims) return 'stranger'
      const { iss, aud, sub, iat, exp } = claims
      const isNamed = ({ app, channel, to }: Recipient) =>
        aud === app && secrets.passSubjects(app, firstChannelTo(channel), to).includes(String(sub))
      const [first] = recipients
      if (!first || iss !== issuer || !recipients.every(isNamed)) return 'stranger'
      const { now, reset } = await timesOf(first)
      return Number(exp) > now && Number(iat) > reset ? 'known' : 'stranger'
    },

    /**
     * The member of the answer to a right code: a token for its browser, for pages and for callers that sent `known`. The
     * code is used up. So the answer does not wait long for a token, and never fails without one.
     */
    async issue(
      recipient: Recipient,
      { isPage }: Pick<Caller, 'isPage'>,
      given: string | true | undefined,
    ): Promise<{ known?: string }> {
      if (!isPage && given === undefined) return {}
      const reading = timesOf(recipient).catch(() => undefined)
      const times = await orLate(reading, tokenWithinMs, () => undefined)
      if (!times) return {}
      const { app, channel, to } = recipient
      const [sub] = secrets.passSubjects(app, firstChannelTo(channel), to)
      const iat = Math.max(times.now, times.reset + 1)
      const exp = iat + lifeSeconds
      return { known: keys.signed(typ, { iss: issuer, aud: app, sub, iat, exp }) }
    },

    /** Ends all tokens of the recipient that were made until now. Throws Unavailable. */
    async endAll(recipient: Recipient): Promise<void> {
      await timesOf(recipient, resetLifeSeconds)
    },
  }
}
