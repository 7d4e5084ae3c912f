import { type Challenge, solveChallenge as search } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'

/**
 * The answer that a page's widget sends for a challenge of the product (`challenge` of an offer of kind `altcha`).
 */
export async function solveChallenge(challenge: Challenge): Promise<string> {
  const solution = await search({ challenge, deriveKey })
  if (!solution) throw new Error('the challenge was not solved in time')
  return payloadOf({ challenge, solution })
}

/** Any answer, also a wrong one, in the form that is sent. */
export function payloadOf(answer: unknown): string {
  return Buffer.from(JSON.stringify(answer)).toString('base64')
}
