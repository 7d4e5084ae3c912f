/**
 * Sends checks in batches: one script call for all checks of one event-loop tick with the same policy and the same
 * options. A round trip and the start of a script cost more than a decision. A batch waits for no timer. It has at most
 * `maxChecks` checks, so that no call blocks Redis for long. In a cluster, the keys of one call must be in one slot, so
 * there is one batch per hash tag.
 *
 * Every check gets an answer or an error within the deadline. After the deadline, the outcome is unknown, and possible
 * uses are given back.
 */
import { LimiterUnavailable } from '../errors.ts'
import { scripts } from '../scripts.ts'
import type { Answer } from '../store.ts'
import type { Run } from './client.ts'
import { notNumbers, notOurs, planOf, unpackHold, usesOf } from './format.ts'
import type { ScriptCall } from './keys.ts'

interface Waiting {
  readonly slot: ScriptCall
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

const maxChecks = 128
/** A new calendar period needs another round trip. More than a few rounds mean a fault. */
const maxRounds = 5

/** `giveUp` is called for each check that may have taken uses although its caller got an error. */
export function createBatch(
  run: Run,
  rememberRequestsMs: number,
  giveUp: (slot: ScriptCall) => void,
) {
  let batches = new Map<string, Waiting[]>()

  /** Checks with the same name can share a call. */
  const nameOf = ({ check, place }: ScriptCall): string => check.group + place

  function askInBatch(slot: ScriptCall): Promise<Answer> {
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
    const keys: string[] = []
    for (const { slot } of batch) keys.push(...slot.keys, slot.requestKey ?? '')
    try {
      const callIds = batch.map(({ slot }) => slot.callId).join('')
      const reply = await run(scripts.acquire, keys, [
        planOf(first.slot.check),
        rememberRequestsMs,
        callIds,
      ])
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

  return askInBatch
}

function settle(batch: readonly Waiting[], now: number, answers: readonly (number | Buffer)[]) {
  let at = 0
  for (const { slot, resolve, reject } of batch) {
    const { policy, asks } = slot.check
    const code = answers[at]
    if (typeof code === 'number' && code !== 0) {
      const newLock = code < -1 ? unpackHold(policy, -code) : undefined
      if (newLock) at++
      const hold = Number(answers[at++])
      if (hold < 0) reject(new LimiterUnavailable(notOurs))
      else resolve({ hold: unpackHold(policy, hold), newLock })
      continue
    }
    const taken = asks.map((ask) => {
      const isFull = answers[at] === 0
      if (isFull) at++
      return { ask, uses: usesOf(ask.part, answers[at++], now), isFull, now }
    })
    resolve({ taken })
  }
}

/** True if surely nothing changed: Redis answered with an error, or the command was never sent. */
function isCertain(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof Error)) return false
  return cause.name === 'ReplyError' || cause.message.startsWith("Stream isn't writeable")
}
