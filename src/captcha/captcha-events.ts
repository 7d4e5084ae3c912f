/**
 * Events about codes. A check lives in Redis, so unlike the moves of a notice these can't be written in
 * one step with what they tell: they are written right behind it, tried again for a minute while
 * PostgreSQL is away, and lost with a process that dies in that time. docs/events.md says so.
 */
import type { EventType } from '../base/event-types.ts'
import type { RedisClient } from '../base/redis-script.ts'
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

/** Tries to write an event. */
const tries = 60
const betweenTriesMs = 1_000

export function createCaptchaEvents(deps: {
  redis: RedisClient
  secrets: Secrets
  keyPrefix: string
  /** The types that a receiver wants; of anything else nothing is written. */
  types: readonly EventType[]
  write: (event: CaptchaEvent) => Promise<void>
}) {
  const { redis, secrets, keyPrefix, types, write } = deps

  const factsOf = ({ channel, to, scene }: CodeOwner) => ({
    channel,
    to: maskRecipient(channel, to),
    scene,
  })

  async function writeEvent(event: CaptchaEvent): Promise<void> {
    for (let attempt = 0; attempt < tries; attempt++) {
      try {
        return await write(event)
      } catch {
        await new Promise((resolve) => setTimeout(resolve, betweenTriesMs).unref())
      }
    }
  }

  return {
    passed(owner: CodeOwner, noticeId: string): void {
      if (!types.includes('captcha.passed')) return
      const data = { id: noticeId, ...factsOf(owner) }
      void writeEvent({ app: owner.app, type: 'captcha.passed', data })
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
      await writeEvent({ app: owner.app, type: 'captcha.locked', data })
    },
  }
}
