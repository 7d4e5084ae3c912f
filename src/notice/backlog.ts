/** How much waits to be sent: the queue, the open notices and the events. Every process reads the same. */
import { reachRedis } from '../base/unavailable.ts'
import type { EventOutbox } from './event-outbox.ts'
import type { NoticeMetrics } from './metrics.ts'
import type { Producer } from './producer.ts'
import type { NoticeStore } from './store.ts'

export type Backlog = Awaited<ReturnType<ReturnType<typeof createBacklog>['read']>>

export function createBacklog(deps: {
  producer: Pick<Producer, 'depths'>
  notices: Pick<NoticeStore, 'oldestOpenSeconds' | 'scheduledCount'>
  events: Pick<EventOutbox, 'oldestSeconds'>
}) {
  const { producer, notices, events } = deps
  return {
    /** Throws Unavailable. */
    async read() {
      const [depths, oldestOpen, scheduled, oldestEventSeconds] = await Promise.all([
        reachRedis(producer.depths()),
        notices.oldestOpenSeconds(),
        notices.scheduledCount(),
        events.oldestSeconds(),
      ])
      return { depths, oldestOpen, scheduled, oldestEventSeconds }
    },

    /** Sets the gauges. A gauge whose server does not answer has no value. */
    async measure(metrics: NoticeMetrics): Promise<void> {
      await Promise.all([
        metrics.queueDepth.measure(producer.depths),
        metrics.oldestPendingSeconds.measure(notices.oldestOpenSeconds),
        metrics.scheduled.measure(async () => [{ value: await notices.scheduledCount() }]),
        metrics.oldestEventSeconds.measure(async () => [{ value: await events.oldestSeconds() }]),
      ])
    },
  }
}
