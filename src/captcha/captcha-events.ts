/**
 * Events about codes, and the ends of codes in their rows. A check lives in Redis, so these can't be written in the same
 * step. They are written right after the check, and tried again for a minute while PostgreSQL is away. If the process dies
 * in that time, they are lost (docs/events.md).
 */
import { randomUUID } from 'node:crypto'
import { orLate } from '../base/deadline.ts'
import type { EventType } from '../base/event-types.ts'
import type { CodeId, NoticeId } from '../base/ids.ts'
import { activeTraceParent } from '../base/traces.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { CodeEnd } from '../notice/code-end.ts'
import { maskRecipient } from '../recipient/channels.ts'
import type { Refusal } from '../rules/quota.ts'
import type { CodeOwner } from './code-store.ts'

export interface CaptchaEvent {
  /** The id and the time of the event are the same in each repeat of its write. */
  id: string
  createdAt: Date
  app: string
  type: 'captcha.passed' | 'captcha.locked'
  data: Record<string, unknown>
  /** The sampled span of the check. */
  traceParent?: string | undefined
}

/** Writes the end of a code for its notice, which went to this address, and for its verification. */
export type EndCode = (
  to: CodeOwner,
  ended: { noticeId?: NoticeId; codeId?: CodeId },
  end: CodeEnd,
) => Promise<void>

export type CaptchaEvents = ReturnType<typeof createCaptchaEvents>

/** Limits of the repeated writes: time and number of events. */
const patience = { maxAgeMs: 60_000, maxEntries: 10_000, isOnceEnough: true }

/** A caller that reads the notice right after the check sees the end, unless PostgreSQL is slower than this. */
const endWithinMs = 500

export function createCaptchaEvents(deps: {
  /** The types that a receiver wants. Events of other types are not written. */
  types: readonly EventType[]
  write: (event: CaptchaEvent) => Promise<void>
  endCode: EndCode
  /** PostgreSQL's time. */
  nowMs: () => number
}) {
  const { types } = deps
  const unanswered = createUntilAnswered(patience)

  const factsOf = ({ channel, to, scene }: CodeOwner) => ({
    channel,
    to: maskRecipient(channel, to),
    scene,
  })

  async function untilDone(run: () => Promise<void>): Promise<void> {
    await run().catch(() => unanswered.add(randomUUID(), run))
  }

  function write(event: Pick<CaptchaEvent, 'app' | 'type' | 'data'>): Promise<void> {
    const whole = {
      ...{ id: randomUUID(), createdAt: new Date(deps.nowMs()) },
      ...{ ...event, traceParent: activeTraceParent() },
    }
    return untilDone(() => deps.write(whole))
  }

  return {
    passed(owner: CodeOwner, noticeId: string): void {
      if (!types.includes('captcha.passed')) return
      const data = { id: noticeId, ...factsOf(owner) }
      void write({ app: owner.app, type: 'captcha.passed', data })
    },

    async ended(...of: Parameters<EndCode>): Promise<void> {
      const writing = untilDone(() => deps.endCode(...of))
      await orLate(writing, endWithinMs, () => {})
    },

    locked(owner: CodeOwner, { rule, retryAfterMs }: Pick<Refusal, 'rule' | 'retryAfterMs'>): void {
      if (!types.includes('captcha.locked')) return
      const data = { ...factsOf(owner), rule, lockedForMs: retryAfterMs }
      void write({ app: owner.app, type: 'captcha.locked', data })
    },

    close: unanswered.close,
  }
}
