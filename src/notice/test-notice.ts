/** The notice of a test recipient: counted apart, with its times, and never made. */
import type { Metrics } from '../metrics/metrics.ts'
import type { CreatedNotice, PreparedNotice } from './create.ts'

export type TakeTestNotice = ReturnType<typeof createTakeTestNotice>

export function createTakeTestNotice(deps: {
  metrics: Pick<Metrics, 'testSends'>
  /** PostgreSQL's, as for notices. */
  nowMs: () => number
}) {
  return function takeTestNotice(notice: PreparedNotice): CreatedNotice {
    deps.metrics.testSends.inc({ channel: notice.channel })
    const createdAt = new Date(deps.nowMs())
    const expiresAt = new Date((notice.sendAt ?? createdAt).getTime() + notice.ttlMs)
    return { ...notice, createdAt, expiresAt }
  }
}
