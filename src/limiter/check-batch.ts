/**
 * All checks of one event-loop tick travel in one script call per policy, because a round trip and a
 * script start cost more than the decision itself. A batch forms by itself: the first check of a tick
 * schedules the call for the end of the tick, and nothing waits for a timer. At most `maxChecks` go in
 * one call, so that no call holds Redis for long. In a cluster the keys of a call must share a slot, so
 * there is one batch per hash tag.
 *
 * Every check gets a definite word within the deadline. After the deadline its outcome is unknown: if
 * the reply still comes and says that it took something, that is given up.
 */
import type { RedisClient } from '../redis/script.ts'
import { maxWindows, type ScriptPlan } from './acquire-script.ts'
import { look } from './cells.ts'
import { LimiterUnavailable } from './limiter.ts'
import type { Part } from './plan.ts'
import { createLook } from './policy-set.ts'
import { readValue } from './redis-values.ts'

/** Parts of a policy whose values lie together, and the keys of one subject's. */
export interface Slot {
  readonly plan: ScriptPlan
  /** In a cluster: what its keys have in common. */
  readonly tag: string
  readonly keys: readonly string[]
  readonly requestKey: string | undefined
}

export type Answer =
  /** By window of the policy, for the windows of the slot: what is left; below 0, observed and full. */
  | { readonly admitted: true; readonly left: number[]; readonly nextInMs: number }
  | {
      readonly admitted: false
      readonly window: number
      readonly retryAfterMs: number
      readonly sentAt: number
    }

/** What a check must do before it can be asked again. */
export type Obstacle = { readonly now: number } | { readonly reshape: Part; readonly key: string }

interface Check {
  readonly slot: Slot
  readonly resolve: (answer: Answer | Obstacle) => void
  readonly reject: (error: LimiterUnavailable) => void
  readonly giveUp: (() => void) | undefined
  isFailed: boolean
}

interface Batch {
  readonly name: string
  readonly plan: ScriptPlan
  readonly tag: string
  readonly permits: number
  readonly hasIds: boolean
  readonly keys: string[]
  readonly checks: Check[]
}

const maxChecks = 128

export function createCheckBatch(deps: {
  redis: RedisClient
  deadlineMs: number
  rememberRequestsMs: number
}) {
  const { redis, deadlineMs, rememberRequestsMs } = deps
  const pending = new Map<string, Batch>()
  const found = createLook()
  /** The batch of the last check; most often the next one goes there too. */
  let latest: Batch | undefined
  let isScheduled = false

  function batchOf(slot: Slot, permits: number): Batch {
    const { plan, tag } = slot
    const hasIds = slot.requestKey !== undefined
    if (
      latest?.plan === plan &&
      latest.permits === permits &&
      latest.hasIds === hasIds &&
      latest.tag === tag
    ) {
      return latest
    }
    const name = `${plan.id} ${permits} ${hasIds} ${tag}`
    latest = pending.get(name)
    if (!latest) {
      latest = { name, plan, tag, permits, hasIds, keys: [], checks: [] }
      pending.set(name, latest)
    }
    return latest
  }

  /** Asks Redis once. `giveUp` is called when nobody can know whether the check took something. */
  function ask(
    slot: Slot,
    permits: number,
    giveUp: (() => void) | undefined,
  ): Promise<Answer | Obstacle> {
    return new Promise((resolve, reject) => {
      const batch = batchOf(slot, permits)
      for (const key of slot.keys) batch.keys.push(key)
      if (slot.requestKey !== undefined) batch.keys.push(slot.requestKey)
      batch.checks.push({ slot, resolve, reject, giveUp, isFailed: false })
      if (batch.checks.length >= maxChecks) {
        latest = undefined
        pending.delete(batch.name)
        void send(batch)
      } else if (!isScheduled) {
        isScheduled = true
        setImmediate(() => {
          isScheduled = false
          flush()
        })
      }
    })
  }

  function flush(): void {
    latest = undefined
    for (const batch of pending.values()) void send(batch)
    pending.clear()
  }

  async function send(batch: Batch): Promise<void> {
    const { plan, permits, checks } = batch
    const fail = (error: LimiterUnavailable, isUnknown: boolean) => {
      for (const check of checks) {
        if (isUnknown && !check.isFailed) check.giveUp?.()
        check.isFailed = true
        check.reject(error)
      }
    }
    const sentAt = performance.now()
    const deadline = setTimeout(
      () => fail(new LimiterUnavailable(`Redis gave no answer within ${deadlineMs} ms`), true),
      deadlineMs,
    )
    try {
      const args = plan.args(permits, batch.hasIds ? rememberRequestsMs : 0)
      const reply = (await plan.script.runForBytes(redis, batch.keys, args)) as Reply
      clearTimeout(deadline)
      let at = 1
      for (const check of checks) at = settle(check, permits, reply, at, sentAt)
    } catch (error) {
      clearTimeout(deadline)
      const message = error instanceof Error ? error.message : String(error)
      fail(
        new LimiterUnavailable(`Redis did not decide: ${message}`, { cause: error }),
        !isCertain(error),
      )
    }
  }

  /** Reads one check's part of a reply; returns where the next one's begins. */
  function settle(check: Check, permits: number, reply: Reply, at: number, sentAt: number): number {
    const { slot, resolve } = check
    const now = reply[0] as number
    const code = reply[at]
    if (typeof code === 'number' && code !== 0) {
      if (code > 0) {
        const retryAfterMs = Math.floor(code / maxWindows)
        resolve({ admitted: false, window: code % maxWindows, retryAfterMs, sentAt })
      } else if (code === -1) resolve({ now })
      else {
        const reshape = slot.plan.parts[-2 - code] as Part
        resolve({ reshape, key: slot.keys[-2 - code] as string })
      }
      return at + 1
    }
    const { parts, scratch } = slot.plan
    const left: number[] = []
    let nextInMs = 0
    let next = at
    for (let index = 0; index < parts.length; index++) {
      const part = parts[index] as Part
      const isFull = reply[next] === 0
      if (isFull) next++
      const store = scratch[index] as (typeof scratch)[number]
      const asked = permits * part.rule.permits
      readValue(reply[next++] as Buffer, part, now, store)
      look(store, 0, part, now, isFull ? asked : 0, asked, left, found)
      if (part.rule.mode === 'enforce' && found.nextMs > nextInMs) nextInMs = found.nextMs
    }
    if (check.isFailed) check.giveUp?.()
    else resolve({ admitted: true, left, nextInMs })
    return next
  }

  return { ask }
}

type Reply = readonly (number | Buffer)[]

/** An error that Redis itself answered, or a command that never left, has changed nothing. */
function isCertain(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return error.name === 'ReplyError' || error.message.startsWith("Stream isn't writeable")
}
