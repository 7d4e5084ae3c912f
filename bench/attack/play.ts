/**
 * Plays the visits of a day against an API, in the order of their times, by the clock of that day. Counts how they
 * end. Honest people wait when they must, solve challenges, type the code, or ask twice.
 */
import type { Visit } from './day.ts'
import { createCall, type World } from './world.ts'

export interface Played {
  attack: Counts
  /** Honest people, by channel. */
  sms: Counts
  email: Counts
}

export interface Counts {
  /** Visitors, and visitors who got no code. */
  visits: number
  lost: number
  /** Messages that were sent, and their cost by the policy file. */
  messages: number
  price: number
  /** Refused by a limit; refused with a challenge; solved a challenge. */
  refused: number
  asked: number
  solved: number
  passed: number
  /** Refusals by rule. */
  byRule: Record<string, number>
}

const noCounts = (): Counts => ({
  visits: 0,
  lost: 0,
  messages: 0,
  price: 0,
  refused: 0,
  asked: 0,
  solved: 0,
  passed: 0,
  byRule: {},
})

/** A visitor who must wait longer than this leaves the page. */
const patienceMs = 90_000
const typingMs = 20_000

interface Step {
  atMs: number
  run: () => Promise<void>
}

/**
 * Visits within `sliceMs` of the day run at once, at the time of the first. The windows of most rules are an hour and a
 * day long.
 */
export async function play(
  visits: readonly Visit[],
  world: World,
  sliceMs = 60_000,
): Promise<Played> {
  const { call, close } = createCall(world)
  const played: Played = { attack: noCounts(), sms: noCounts(), email: noCounts() }
  const steps: Step[] = visits.map((visit) => ({
    atMs: visit.atMs,
    run: () => arrive(visit, visit.isHonest ? played[visit.channel] : played.attack),
  }))
  steps.sort((a, b) => a.atMs - b.atMs)
  /** Steps that were added during the day, in the order of their times. */
  const later: Step[] = []
  const plan = (step: Step) => {
    const place = later.findIndex(({ atMs }) => atMs > step.atMs)
    later.splice(place < 0 ? later.length : place, 0, step)
  }
  let nowMs = 0

  async function arrive(visit: Visit, counts: Counts): Promise<void> {
    counts.visits += 1
    await send(visit, counts, true)
  }

  async function send(visit: Visit, counts: Counts, isFirst: boolean, challenge?: string) {
    const { ip, channel, to } = visit
    const atMs = nowMs
    const { status, answer } = await call('/v1/captchas', ip, {
      channel,
      to,
      ...(challenge ? { challenge } : {}),
    })
    if (status === 202) {
      counts.messages += 1
      counts.price += world.priceOf(visit)
      if (visit.does === 'check' || (visit.does === 'ask again' && !isFirst)) {
        plan({ atMs: atMs + typingMs, run: () => check(visit, counts, answer.id) })
      } else if (visit.does === 'ask again') {
        plan({ atMs: atMs + 65_000, run: () => send(visit, counts, false) })
      }
      return
    }
    if (status === 403 && !challenge) {
      counts.asked += 1
      if (visit.isHonest || world.isSolving) {
        counts.solved += 1
        return send(visit, counts, isFirst, await world.solve(answer.challenge.challenge))
      }
    } else if (status === 429) {
      counts.refused += 1
      counts.byRule[answer.rule] = (counts.byRule[answer.rule] ?? 0) + 1
      if (visit.isHonest && isFirst && answer.retryAfterMs <= patienceMs) {
        plan({ atMs: atMs + answer.retryAfterMs, run: () => send(visit, counts, false) })
        return
      }
    } else throw new Error(`${status} ${JSON.stringify(answer)}`)
    // A visitor who asks a second time has got the first code.
    if (isFirst || visit.does !== 'ask again') counts.lost += 1
  }

  async function check(
    { ip, channel, to }: Visit,
    counts: Counts,
    noticeId: string,
  ): Promise<void> {
    const code = await world.readCode(noticeId)
    const { status } = await call('/v1/captchas/check', ip, { channel, to, code })
    if (status === 200) counts.passed += 1
  }

  try {
    for (let next = 0; next < steps.length || later.length > 0; ) {
      const atMs = Math.min(
        steps[next]?.atMs ?? Number.POSITIVE_INFINITY,
        later[0]?.atMs ?? Number.POSITIVE_INFINITY,
      )
      nowMs = atMs
      world.setTime(atMs)
      const due: Step[] = []
      while (steps[next] && (steps[next] as Step).atMs < atMs + sliceMs)
        due.push(steps[next++] as Step)
      while (later[0] && later[0].atMs < atMs + sliceMs) due.push(later.shift() as Step)
      await Promise.all(due.map(({ run }) => run()))
    }
  } finally {
    await close()
  }
  return played
}
