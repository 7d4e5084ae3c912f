/**
 * A proof of work (altcha, version 2): the page derives keys from counters 0, 1, 2, … until one begins as
 * the challenge says. We draw the last counter, so we know the key, and put its signature into the challenge:
 * to look at an answer takes two HMACs and no derivation, however often somebody sends it.
 *
 * The counter is even over its whole range, so that to begin late or to give up early gains nothing. A
 * single derivation is cheap, because we pay one for every challenge we hand out; a caller pays thousands.
 *
 * Signed with a key of the app and the API key that were asked, so a challenge shows neither and opens
 * nothing elsewhere. altcha-lib makes it. Signing and verifying are ours, though of its form (a test holds them to
 * its `verifySolution`): that would judge the expiry by this process's clock, and its HMACs, imported anew each
 * time, cost more than the derivation, in what a flood makes us do.
 */
import { createHmac, randomInt } from 'node:crypto'
import { createChallenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import { z } from 'zod'
import { parseJson } from '../base/json.ts'
import { isSameSecret } from '../crypto/same-secret.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Asked, ChallengeKind, Reading } from './challenge-kind.ts'

/** Of one derivation: less than 0.1 ms of our processors. */
const iterations = 100
const validForMs = 300_000
/** The processes that share a Redis differ by no more in what PostgreSQL's time is. */
const clockToleranceMs = 30_000

const hex = z.string().regex(/^[0-9a-f]{64}$/)

const answerSchema = z.object({
  challenge: z.object({
    // Whatever they say is either what we signed, or refused.
    parameters: z.record(z.string(), z.union([z.string(), z.number()])),
    signature: hex,
  }),
  solution: z.object({ counter: z.int().min(0), derivedKey: hex }),
})

export function createAltcha(deps: {
  secrets: Pick<Secrets, 'challengeKeys'>
  /** Keys that a caller derives on average. */
  tries: number
  /** PostgreSQL's. */
  nowMs: () => number
}): ChallengeKind {
  const { secrets, tries, nowMs } = deps

  /** The current secret's first. */
  function keysOf({ app, keyId }: Asked) {
    const ofAnswers = secrets.challengeKeys(['answer', app, keyId])
    const [current, ...previous] = secrets
      .challengeKeys(['challenge', app, keyId])
      .map((ofChallenge, at) => ({ ofChallenge, ofAnswer: ofAnswers[at] ?? '' }))
    if (!current) throw new Error('there is always a current secret')
    return [current, ...previous] as const
  }

  return {
    async offer(asked, factor) {
      const [current] = keysOf(asked)
      const { parameters } = await createChallenge({
        algorithm: 'PBKDF2/SHA-256',
        cost: iterations,
        counter: randomInt(1, 2 * tries * factor + 1),
        expiresAt: Math.floor((nowMs() + validForMs) / 1_000),
        async deriveKey(...of) {
          const { derivedKey } = await deriveKey(...of)
          return { derivedKey, parameters: { keySignature: hmacOf(current.ofAnswer, derivedKey) } }
        },
      })
      const signature = hmacOf(current.ofChallenge, inOrder(parameters))
      return { kind: 'altcha', challenge: { parameters, signature } }
    },

    read(asked, answer): Reading {
      const parsed = parseAnswer(answer)
      if (!parsed) return { kind: 'malformed' }
      const { challenge, solution } = parsed
      const { parameters, signature } = challenge
      const signed = keysOf(asked).find(({ ofChallenge }) =>
        isSameSecret(hmacOf(ofChallenge, inOrder(parameters)), signature),
      )
      if (!signed) return { kind: 'wrong' }
      const aliveMs = Number(parameters.expiresAt) * 1_000 - nowMs()
      if (aliveMs <= 0) return { kind: 'expired' }
      const proof = hmacOf(signed.ofAnswer, Buffer.from(solution.derivedKey, 'hex'))
      return isSameSecret(proof, String(parameters.keySignature))
        ? { kind: 'right', id: signature, aliveMs: aliveMs + clockToleranceMs }
        : { kind: 'wrong' }
    },

    prove: async () => true,
    close() {},
  }
}

function parseAnswer(answer: string) {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(answer)) return undefined
  return answerSchema.safeParse(parseJson(Buffer.from(answer, 'base64').toString())).data
}

/** As altcha-lib writes parameters for signing. */
function inOrder(parameters: object): string {
  return JSON.stringify(Object.fromEntries(Object.entries(parameters).sort(byName)))
}

const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)

function hmacOf(key: string, text: string | Uint8Array): string {
  return createHmac('sha256', key).update(text).digest('hex')
}
