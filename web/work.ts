/** Runs one request at a time, solves its challenges, and can end it. */
import type { Challenge, Result } from './client.ts'
import type { Tell } from './events.ts'
import { solveChallenge } from './proof-of-work.ts'
import type { Screen } from './screen.ts'
import type { View } from './view.ts'

/** More than one, because a challenge may expire before its answer is found. */
const maxChallenges = 3

export type Work = ReturnType<typeof createWork>

export function createWork(view: View, screen: Screen, tell: Tell) {
  const { state, say, change } = screen
  let current = new AbortController()

  return {
    /** Undefined if the request was stopped. No other request may be under way. */
    async run<Answer>(
      kind: 'send' | 'check',
      ask: (challenge?: string) => Promise<Result<Answer>>,
    ): Promise<Result<Answer> | undefined> {
      current = new AbortController()
      const { signal } = current
      state.busyWith = kind
      say(`${kind}ing`)
      return pastChallenges(ask, (offer) => solve(offer, signal), signal)
    },

    /** Receives a vendor's token. */
    answer(token: string): void {
      const { onAnswer } = state
      view.challenge.replaceChildren()
      change({ onAnswer: undefined })
      onAnswer?.(token)
    },

    stop(): void {
      current.abort()
    },
  }

  function solve(offer: Challenge, signal: AbortSignal): Promise<string> {
    if (offer.kind === 'altcha') {
      say('solving')
      return solveChallenge(offer.challenge, signal)
    }
    const { kind, siteKey } = offer
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
      const onAnswer = (token: string) => {
        say('solving')
        resolve(token)
      }
      change({ onAnswer, message: { name: 'challenge', tone: 'plain' } })
      tell('challenge', { kind, siteKey, container: view.challenge })
    })
  }
}

/** Sends a request, and repeats it with the answer to each challenge. Undefined if it was stopped. */
async function pastChallenges<Answer>(
  ask: (answer?: string) => Promise<Result<Answer>>,
  solve: (challenge: Challenge) => Promise<string>,
  signal: AbortSignal,
): Promise<Result<Answer> | undefined> {
  let result = await ask()
  for (let n = 0; n < maxChallenges; n++) {
    if (signal.aborted || result.ok || result.problem.code !== 'challenge_required') break
    try {
      result = await ask(await solve(result.problem.challenge))
    } catch (error) {
      if (!signal.aborted) console.error('<postern-code> could not solve the challenge:', error)
      break
    }
  }
  return signal.aborted ? undefined : result
}
