/** One thing at a time: a request, the challenges on its way, and what ends it. */
import type { Challenge, Result } from './client.ts'
import { pastChallenges } from './past-challenges.ts'
import { solveChallenge } from './proof-of-work.ts'
import type { Screen } from './screen.ts'
import type { View } from './view.ts'

export type Tell = (type: string, detail: object) => void
export type Work = ReturnType<typeof createWork>

export function createWork(view: View, screen: Screen, tell: Tell) {
  const { state, begin, say, change } = screen
  let current = new AbortController()

  return {
    /** Undefined: it was given up. Nothing else may go on. */
    async run<Answer>(
      kind: 'send' | 'check',
      ask: (challenge?: string) => Promise<Result<Answer>>,
    ): Promise<Result<Answer> | undefined> {
      current = new AbortController()
      const { signal } = current
      begin(kind)
      const result = await pastChallenges(ask, (offer) => solve(offer, signal), signal)
      return signal.aborted ? undefined : result
    },

    /** Takes a vendor's token. */
    answer(token: string): void {
      const { onAnswer } = state
      view.challenge.replaceChildren()
      change({ onAnswer: undefined })
      onAnswer?.(token)
    },

    /** What goes on is of no use any more. */
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
