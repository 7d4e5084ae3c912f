/**
 * A proof of work (altcha, version 2). The page derives keys from the counters 0, 1, 2, … until one key has the
 * required beginning. This server draws the last counter, so it knows the key, and signs it into the challenge. To
 * check an answer costs two HMACs and no derivation, however often it is sent.
 *
 * All counters are equally likely, so it does not help to begin late or to give up early. One derivation is cheap,
 * because every challenge costs this server one. A caller pays thousands.
 *
 * The signing key belongs to the app and the API key. So a challenge shows neither of them, and its answer is valid for
 * no other key.
 *
 * altcha-lib makes the challenge. Signing and verifying happen here in its format, and a test compares the results
 * with its `verifySolution`. That function would check the expiry by this process's clock. It also imports HMAC keys
 * anew each time, which costs more than the derivation.
 */
import { createHmac, randomInt } from 'node:crypto'
import { createChallenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import { z } from 'zod'
import { parseJson } from '../base/json.ts'
import { isSameSecret } from '../crypto/same-secret.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { ChallengeKind, ChallengeOwner, Reading } from './challenge-kind.ts'

/** Iterations per derivation: less than 0.1 ms on a server. */
const iterations = 100
const validForMs = 300_000
/** The greatest difference between the PostgreSQL times of processes with one Redis. */
const clockToleranceMs = 30_000

const hex = z.string().regex(/^[0-9a-f]{64}$/)

const answerSchema = z.object({
  challenge: z.object({
    // Not checked further: unsigned values are refused.
    parameters: z.record(z.string(), z.union([z.string(), z.number()])),
    signature: hex,
  }),
  solution: z.object({ counter: z.int().min(0), derivedKey: hex }),
})

export function createAltcha(deps: {
  secrets: Pick<Secrets, 'challengeKeys'>
  /** Keys that a caller derives on average. */
  tries: number
  /** PostgreSQL's time. */
  nowMs: () => number
}): ChallengeKind {
  const { secrets, tries, nowMs } = deps

  /** One key per secret in use, the current secret first. */
  function keysOf({ app, keyId }: ChallengeOwner) {
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

/** The order in which altcha-lib signs parameters. */
function inOrder(parameters: object): string {
  return JSON.stringify(Object.fromEntries(Object.entries(parameters).sort(byName)))
}

const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1)

function hmacOf(key: string, text: string | Uint8Array): string {
  return createHmac('sha256', key).update(text).digest('hex')
}
