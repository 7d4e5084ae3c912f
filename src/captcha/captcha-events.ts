/**
 * Events about codes. A check lives in Redis, so unlike the moves of a notice these can't be written in
 * one step with what they tell: they are written right behind it, tried again for a minute while
 * PostgreSQL is away, and lost with a process that dies in that time. docs/events.md says so.
 */
import { randomUUID } from 'node:crypto'
import type { EventType } from '../base/event-types.ts'
import type { RedisClient } from '../base/redis-script.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { Secrets } from '../crypto/secrets.ts'
import { maskRecipient } from '../recipient/mask-recipient.ts'
import type { Refusal } from '../rules/quota.ts'
import type { CodeOwner } from './code-store.ts'

export interface CaptchaEvent {
  app: string
  type: 'captcha.passed' | 'captcha.locked'
  data: Record<string, unknown>
}

export type CaptchaEvents = ReturnType<typeof createCaptchaEvents>

/** How long, and for how many events, writing is tried again. */
const patience = { maxAgeMs: 60_000, maxEntries: 10_000, isOnceEnough: true }

export function createCaptchaEvents(deps: {
  redis: RedisClient
  secrets: Secrets
  keyPrefix: string
  /** The types that a receiver wants; of anything else nothing is written. */
  types: readonly EventType[]
  write: (event: CaptchaEvent) => Promise<void>
}) {
  const { redis, secrets, keyPrefix, types } = deps
  const unanswered = createUntilAnswered(patience)

  const factsOf = ({ channel, to, scene }: CodeOwner) => ({
    channel,
    to: maskRecipient(channel, to),
    scene,
  })

  async function write(event: CaptchaEvent): Promise<void> {
    const run = () => deps.write(event)
    await run().catch(() => unanswered.add(randomUUID(), run))
  }

  return {
    passed(owner: CodeOwner, noticeId: string): void {
      if (!types.includes('captcha.passed')) return
      const data = { id: noticeId, ...factsOf(owner) }
      void write({ app: owner.app, type: 'captcha.passed', data })
    },

    /** Once per lock and recipient, however often the locked door is tried. */
    async locked(owner: CodeOwner, { rule, retryAfterMs }: Refusal): Promise<void> {
      if (!types.includes('captcha.locked')) return
      const [hash] = secrets.subjectHashes(['locked', owner.app, rule, owner.channel, owner.to])
      const isNew = await redis
        .set(`${keyPrefix}told:${hash}`, 1, 'PX', Math.max(1, Math.ceil(retryAfterMs)), 'NX')
        .catch(() => null)
      if (isNew === null) return
      const data = { ...factsOf(owner), rule, lockedForMs: retryAfterMs }
      await write({ app: owner.app, type: 'captcha.locked', data })
    },

    close: unanswered.close,
  }
}
