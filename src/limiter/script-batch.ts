/**
 * All checks of one event-loop tick travel in one script call, because a round trip and a script start
 * cost more than the decision itself. A batch forms by itself: the first check of a tick schedules the
 * call for the end of the tick, and nothing waits for a timer. At most `maxChecks` go in one call, so
 * that no call holds Redis for long. In a cluster the keys of a call must share a slot, so there is one
 * batch per hash tag.
 *
 * Every check gets a definite word within the deadline. After the deadline its outcome is unknown, and
 * the reply may still come: `answer` is then called on a check that was failed before.
 */
import type { RedisClient, Script } from '../redis/script.ts'
import { LimiterUnavailable } from './limiter.ts'

export interface Check {
  readonly keys: readonly string[]
  /** Reads its part of the reply from `at`; returns where the next check's begins. */
  answer(reply: readonly number[], at: number, sentAt: number): number
  /** `isUnknown`: the check may have been carried out all the same, or may still be. */
  fail(error: LimiterUnavailable, isUnknown: boolean): void
}

/** Checks that differ only in their keys share their arguments. */
interface Group {
  readonly plan: string
  readonly permits: number
  readonly memoryMs: number
  readonly checks: Check[]
}

const maxChecks = 128

export function createScriptBatch(deps: {
  redis: RedisClient
  script: Script
  deadlineMs: number
}) {
  const { redis, script, deadlineMs } = deps
  const pending = new Map<string, { groups: Group[]; size: number }>()
  let isScheduled = false

  function ask(tag: string, plan: string, permits: number, memoryMs: number, check: Check): void {
    let batch = pending.get(tag)
    if (!batch) {
      batch = { groups: [], size: 0 }
      pending.set(tag, batch)
    }
    let group = batch.groups.find(
      (one) => one.plan === plan && one.permits === permits && one.memoryMs === memoryMs,
    )
    if (!group) {
      group = { plan, permits, memoryMs, checks: [] }
      batch.groups.push(group)
    }
    group.checks.push(check)
    batch.size++
    if (batch.size >= maxChecks) {
      pending.delete(tag)
      void send(batch.groups)
    }
    if (!isScheduled) {
      isScheduled = true
      setImmediate(flush)
    }
  }

  function flush(): void {
    isScheduled = false
    const batches = [...pending.values()]
    pending.clear()
    for (const batch of batches) void send(batch.groups)
  }

  async function send(groups: readonly Group[]): Promise<void> {
    const keys: string[] = []
    const args: (string | number)[] = []
    for (const group of groups) {
      args.push(group.plan, group.checks.length, group.permits, group.memoryMs)
      for (const check of group.checks) keys.push(...check.keys)
    }
    const fail = (error: LimiterUnavailable, isUnknown: boolean) => {
      for (const group of groups) for (const check of group.checks) check.fail(error, isUnknown)
    }
    const sentAt = performance.now()
    const deadline = setTimeout(
      () => fail(new LimiterUnavailable(`Redis gave no answer within ${deadlineMs} ms`), true),
      deadlineMs,
    )
    try {
      const reply = (await script.run(redis, keys, args)) as number[]
      clearTimeout(deadline)
      let at = 0
      for (const group of groups) {
        for (const check of group.checks) at = check.answer(reply, at, sentAt)
      }
    } catch (error) {
      clearTimeout(deadline)
      const message = error instanceof Error ? error.message : String(error)
      fail(
        new LimiterUnavailable(`Redis did not decide: ${message}`, { cause: error }),
        !isCertain(error),
      )
    }
  }

  return { ask }
}

/** An error that Redis itself answered, or a command that never left, has changed nothing. */
function isCertain(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return error.name === 'ReplyError' || error.message.startsWith("Stream isn't writeable")
}

/** The same deadline for calls outside a batch. */
export async function withinDeadline<T>(call: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new LimiterUnavailable(`Redis gave no answer within ${deadlineMs} ms`)),
      deadlineMs,
    )
  })
  try {
    return await Promise.race([call, deadline])
  } catch (error) {
    if (error instanceof LimiterUnavailable) throw error
    const message = error instanceof Error ? error.message : String(error)
    throw new LimiterUnavailable(`Redis did not answer: ${message}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}
