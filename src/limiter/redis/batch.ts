/**
 * All checks of one event-loop tick that ask the same of the same policy travel in one script call,
 * because a round trip and a script start cost more than the decision itself. A batch forms by itself and
 * waits for no timer. At most `maxChecks` go in one call, so that no call holds Redis for long. In a
 * cluster the keys of a call must share a slot, so there is one batch per hash tag.
 *
 * Every check gets a definite word within the deadline. After it the outcome is unknown: what may have
 * been taken is given up.
 */
import { loadScript } from '../../redis/script.ts'
import { LimiterUnavailable } from '../errors.ts'
import type { Part } from '../policy/compile.ts'
import type { Answer } from '../store.ts'
import type { LimiterRedis } from './client.ts'
import { notOurs, planOf, usesOf } from './plan.ts'
import { withinDeadline } from './within-deadline.ts'

/** Parts of a check whose values lie together. */
export interface Slot {
  readonly parts: readonly Part[]
  /** By part. */
  readonly keys: readonly string[]
  readonly permits: readonly number[]
  readonly requestKey: string | undefined
  readonly isSolved: boolean
  /** In a cluster: what the keys of a batch have in common. */
  readonly tag: string
}

interface Waiting {
  readonly slot: Slot
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
  readonly giveUp: () => void
}

const maxChecks = 128
/** A calendar period that turns costs another round trip; more than a few are a fault. */
const maxRounds = 5

export interface BatchOptions {
  readonly redis: LimiterRedis
  readonly deadlineMs: number
  readonly rememberRequestsMs: number
  readonly clock: (() => number) | undefined
}

export function createBatch({ redis, deadlineMs, rememberRequestsMs, clock }: BatchOptions) {
  const script = loadScript('acquire-N')
  let batches = new Map<string, Waiting[]>()
  const ids = new WeakMap<readonly Part[], number>()
  let lastId = 0

  function nameOf({ parts, permits, requestKey, isSolved, tag }: Slot): string {
    const id = ids.get(parts) ?? ++lastId
    ids.set(parts, id)
    return `${id} ${tag} ${isSolved} ${requestKey !== undefined} ${permits}`
  }

  /** `giveUp` is called when the check may have taken something that its caller was not told of. */
  function ask(slot: Slot, giveUp: () => void): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const name = nameOf(slot)
      const batch = batches.get(name) ?? []
      if (batches.size === 0) setImmediate(flush)
      batches.set(name, batch)
      batch.push({ slot, resolve, reject, giveUp })
      if (batch.length < maxChecks) return
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
    const { parts, permits, isSolved, requestKey } = first.slot
    const sentAt = performance.now()
    const keys: string[] = []
    for (const { slot } of batch) {
      for (const key of slot.keys) keys.push(key)
      if (slot.requestKey !== undefined) keys.push(slot.requestKey)
    }
    const args: (string | number)[] = [planOf(parts, permits, isSolved)]
    args.push(requestKey === undefined ? 0 : rememberRequestsMs, ...(clock ? [clock()] : []))
    try {
      settle(
        batch,
        await withinDeadline(script.runForBytes(redis, keys, args), deadlineMs),
        sentAt,
        round,
      )
    } catch (error) {
      for (const { reject, giveUp } of batch) {
        if (!isCertain(error)) giveUp()
        reject(error)
      }
    }
  }

  function settle(batch: readonly Waiting[], reply: unknown, sentAt: number, round: number): void {
    const [now, ...answers] = reply as [number, ...(number | Buffer)[]]
    if (answers.length === 0) {
      if (round >= maxRounds)
        throw new LimiterUnavailable('Redis and the policy have no common period')
      for (const part of batch[0]?.slot.parts ?? []) {
        if (part.kind === 'calendar') part.calendar.periodAt(now)
      }
      return void send(batch, round + 1)
    }
    let at = 0
    for (const { slot, resolve, reject } of batch) {
      const code = answers[at]
      if (typeof code === 'number' && code !== 0) {
        at++
        if (code < 0) reject(new LimiterUnavailable(notOurs))
        else resolve({ hold: Math.floor(code / 2), isNewLock: code % 2 === 1, sentAt })
        continue
      }
      const taken = slot.parts.map((part, index) => {
        const isFull = answers[at] === 0
        if (isFull) at++
        const uses = usesOf(part, answers[at++])
        return { part, uses, isFull, permits: slot.permits[index] ?? 1, now }
      })
      resolve({ hold: 0, taken })
    }
  }

  return ask
}

/** An error that Redis itself answered, or a command that never left, has changed nothing. */
function isCertain(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  if (!(cause instanceof Error)) return false
  return cause.name === 'ReplyError' || cause.message.startsWith("Stream isn't writeable")
}
