import type { Challenge, Result } from './client.ts'

/** An answer may have expired while it was sought. */
const maxChallenges = 3

/** Asks, and asks again with what solves the challenge that came back. Undefined: given up meanwhile. */
export async function pastChallenges<Answer>(
  ask: (answer?: string) => Promise<Result<Answer>>,
  solve: (challenge: Challenge) => Promise<string>,
  signal: AbortSignal,
): Promise<Result<Answer> | undefined> {
  let result = await ask()
  for (let n = 0; n < maxChallenges; n++) {
    if (signal.aborted) return undefined
    if (result.ok || result.problem.code !== 'challenge_required') return result
    try {
      result = await ask(await solve(result.problem.challenge))
    } catch (error) {
      if (signal.aborted) return undefined
      console.error('<postern-code> could not solve the challenge:', error)
      return result
    }
  }
  return signal.aborted ? undefined : result
}
