/** How callers from pages are asked whether they are human, and what their answer opens. */
import type { ApiKey } from '../access/api-keys.ts'
import type { Asked } from '../access/challenge-kind.ts'
import type { Challenges } from '../access/challenges.ts'
import { Problem } from '../base/problems.ts'
import type { Refusal } from '../limiter/index.ts'
import { invalid, refusalProblem } from './problem.ts'
import { defineRoute, type Route, type RouteRequest } from './route.ts'
import { challengeOffer, createChallengeBody } from './schemas/challenges.ts'

/** What the limits refused, if they did. */
interface Limited {
  policy: string
  refusal: Refusal
}

const askedOf = ({ app, id, origins }: ApiKey): Asked => ({ app, keyId: id, origins })

export type PastChallenge = ReturnType<typeof createPastChallenge>['pastChallenge']
export type RefuseLimited = ReturnType<typeof createPastChallenge>['refuseLimited']

/**
 * Does a request's work once the answer it carries, if any, is found right and taken. `isHuman`: rules that ask let it pass;
 * so they do for secret keys, which are never asked. What came to nothing gives the answer back.
 */
export function createPastChallenge(challenges: Challenges) {
  async function challengeProblem(
    { key, ip }: Pick<RouteRequest, 'key' | 'ip'>,
    members: Readonly<Record<string, unknown>> = {},
  ): Promise<Problem> {
    const challenge = await challenges.offer(askedOf(key), ip)
    return new Problem('challenge_required', { ...members, challenge })
  }

  /** The answer to a request that the limits refused: a challenge, where one would open them. */
  async function refuseLimited(
    request: Pick<RouteRequest, 'key' | 'ip'>,
    { policy, refusal }: Limited,
  ): Promise<Problem> {
    return refusal.challenge && request.key.kind === 'publishable'
      ? challengeProblem(request, { policy, rule: refusal.rule })
      : refusalProblem(policy, refusal)
  }

  async function pastChallenge<Outcome>(
    request: RouteRequest<{ challenge?: string | undefined }>,
    work: (isHuman: boolean) => Promise<Outcome>,
    limitedOf: (outcome: Outcome) => Limited | undefined,
  ): Promise<Outcome | Problem> {
    const { key, body, ip } = request
    const taken =
      body.challenge === undefined
        ? undefined
        : await challenges.take(askedOf(key), body.challenge, ip)
    if (taken?.kind === 'malformed') throw invalid('challenge', 'is no answer to a challenge')
    if (taken?.kind === 'refused') return challengeProblem(request)
    let outcome: Outcome
    try {
      outcome = await work(taken !== undefined || key.kind !== 'publishable')
    } catch (error) {
      taken?.giveBack()
      throw error
    }
    const limited = limitedOf(outcome)
    if (!limited) return outcome
    taken?.giveBack()
    return refuseLimited(request, limited)
  }

  return { pastChallenge, refuseLimited }
}

export function challengeRoute(challenges: Challenges): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/challenges',
    name: 'createChallenge',
    summary: 'Ask for a challenge before one is asked for. Its answer opens one send or one check.',
    access: 'page',
    body: createChallengeBody,
    answers: { 200: { description: 'To be solved in the page.', schema: challengeOffer } },
    problems: [],
    run: async ({ key, ip }) => ({
      status: 200,
      body: await challenges.offer(askedOf(key), ip),
    }),
  })
}
