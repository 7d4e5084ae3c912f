/**
 * All checks of one event-loop tick that ask the same of the same policy travel in one script call,
 * because a round trip and a script start cost more than the decision itself. A batch forms by itself and
 * waits for no timer. At most `maxChecks` go in one call, so that no call holds Redis for long. In a
 * cluster the keys of a call must share a slot, so there is one batch per hash tag.
 *
 * Every check gets a definite word within the deadline. After it the outcome is unknown: what may have
 * been taken is given up.
 */
import { LimiterUnavailable } from '../errors.ts'
import { scripts } from '../scripts.ts'
import type { Answer } from '../store.ts'
import type { Run } from './client.ts'
import type { Slot } from './keys.ts'
import { notNumbers, notOurs, planOf, refusedOf, usesOf } from './values.ts'

interface Waiting {
  readonly slot: Slot
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

const maxChecks = 128
/** A calendar period that turns costs another round trip; more than a few are a fault. */
const maxRounds = 5

/** `giveUp` is called with what may have taken something that its caller was not told of. */
export function createBatch(run: Run, rememberRequestsMs: number, giveUp: (slot: Slot) => void) {
  let batches = new Map<string, Waiting[]>()

  /** What checks of one call have in common. */
  function nameOf({ check, requestKey, place }: Slot): string {
    return check.group + (requestKey === undefined ? '' : ' id') + place
  }

  function ask(slot: Slot): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const name = nameOf(slot)
      const batch = batches.get(name) ?? []
      if (batches.size === 0) setImmediate(flush)
      if (batch.push({ slot, resolve, reject }) < maxChecks) return void batches.set(name, batch)
      batches.set(name, [])
      void send(batch)
    })
  }

  function flush(): void {
    const full = batches
    batches = new Map()
    for (const batch of full.values()) void send(batch)
  }

  async function send(batch: readonly Waiting[], round = 1): Promise<void> {
    const [first] = batch
    if (!first) return
    const memoryMs = first.slot.requestKey === undefined ? 0 : rememberRequestsMs
    const keys: string[] = []
    for (const { slot } of batch) {
      keys.push(...slot.keys)
      if (slot.requestKey !== undefined) keys.push(slot.requestKey)
    }
    try {
      const callIds = batch.map(({ slot }) => slot.callId).join('')
      const reply = await run(scripts.acquire, keys, [planOf(first.slot.check), memoryMs, callIds])
      const [now, ...answers] = reply as [number, ...(number | Buffer)[]]
      if (typeof now !== 'number') throw new LimiterUnavailable(notNumbers)
      if (answers.length > 0) return settle(batch, now, answers)
      if (round >= maxRounds)
        throw new LimiterUnavailable(
          'the clocks of Redis and this process disagree about a calendar period',
        )
      for (const { part } of first.slot.check.asks) part.calendar?.periodAt(now)
    } catch (error) {
      for (const { slot, reject } of batch) {
        if (!isCertain(error)) giveUp(slot)
        reject(error)
      }
      return
    }
    return send(batch, round + 1)
  }

  return ask
}

function settle(batch: readonly Waiting[], now: number, answers: readonly (number | Buffer)[]) {
  let at = 0
  for (const { slot, resolve, reject } of batch) {
    const code = answers[at]
    if (typeof code === 'number' && code !== 0) {
      at++
      if (code < 0) reject(new LimiterUnavailable(notOurs))
      else resolve(refusedOf(slot.check.policy, code))
      continue
    }
    const taken = slot.check.asks.map((ask) => {
      const isFull = answers[at] === 0
      if (isFull) at++
      return { ask, uses: usesOf(ask.part, answers[at++], now), isFull, now }
    })
    resolve({ taken })
  }
}

/** An error that Redis itself answered, or a command that never left, has changed nothing. */
function isCertain(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof Error)) return false
  return cause.name === 'ReplyError' || cause.message.startsWith("Stream isn't writeable")
}
