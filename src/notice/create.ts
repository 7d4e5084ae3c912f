/**
 * Makes a notice: seals its variables, commits its row, and puts it on the queue.
 *
 * The 202 is sent after the commit. Queueing is not awaited: if it fails or the process dies, the reconciler
 * finds the row. If the commit ends without a clear result (time-out, lost connection), the row may still appear. No
 * caller was promised that row. So it is closed as soon as PostgreSQL answers, before a worker may claim it.
 */
import { createBatcher } from '../base/batcher.ts'
import type { Channel } from '../base/channel.ts'
import { orLate } from '../base/deadline.ts'
import type { NoticeId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { SuppressionReason } from '../base/suppression.ts'
import { activeTraceParent, traced } from '../base/traces.ts'
import { Unavailable } from '../base/unavailable.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { NoticeDraft } from './insert.ts'
import { queueSpan } from './job.ts'
import type { NoticeMetrics } from './metrics.ts'
import type { Producer } from './producer.ts'
import type { NoticeStore } from './store.ts'

/** Variables of a template: the caller's values, and the code. */
export type Params = Readonly<Record<string, string | number | boolean>>

/** A notice before its row is committed. */
export type PreparedNotice = Readonly<NoticeDraft> & { readonly id: NoticeId }

/** A notice whose row is committed. */
export interface CreatedNotice extends PreparedNotice {
  readonly createdAt: Date
  readonly expiresAt: Date
}

export type CreateNotice = ReturnType<typeof createNoticeCreator>['createNotice']

/** Closing the row is tried for this time. A row that appears later is sent only if the checks of delivery allow it. */
const abandonTimeoutMs = 300_000
const maxUnanswered = 10_000

export function createNoticeCreator(deps: {
  store: NoticeStore
  producer: Producer
  /** The keyed hashes by which notices of a recipient are found: for a new row, then by the previous secret. */
  hashesOf: (channel: Channel, to: string) => readonly Buffer[]
  /** Encrypts the variables. They can be decrypted only with the same id. */
  seal: (text: string, noticeId: NoticeId) => Buffer
  metrics: NoticeMetrics
  log: Log
  isTestRecipient: (to: string) => boolean
  /** PostgreSQL's time. */
  nowMs: () => number
}) {
  const { store, producer, hashesOf, seal, metrics, log, isTestRecipient, nowMs } = deps
  const unanswered = createUntilAnswered({ maxAgeMs: abandonTimeoutMs, maxEntries: maxUnanswered })
  const abandon = createBatcher<string, void>({
    maxItems: 200,
    maxConcurrent: 1,
    run: (ids) => store.abandon(ids),
  })

  /**
   * Resolves with the times of the committed row. Throws Unavailable if it was not committed within `timeoutMs`; if it
   * appears later, it is closed as `abandoned`. A test recipient gets no message, so its notice has times but no row.
   * Returns the reason if the recipient must get nothing; then there is no row. `superseded`: another notice has begun its
   * way, or its verification has ended.
   */
  async function createNotice(
    notice: PreparedNotice,
    params: Params,
    timeoutMs: number,
  ): Promise<CreatedNotice | SuppressionReason | 'superseded'> {
    if (isTestRecipient(notice.to)) {
      if (notice.begun && !(await store.passWay(notice.begun, notice.id))) return 'superseded'
      metrics.testSends.inc({ channel: notice.channel })
      return withTimes(notice, new Date(nowMs()))
    }
    if (timeoutMs <= 0) throw outOfTime()
    const span = { ...queueSpan('send', notice), mayBeFirst: true } as const
    const createdAt = await traced(span, () => commit(notice, params, timeoutMs))
    if (!createdAt && notice.begun) return 'superseded'
    if (!createdAt) throw new Error(`there is a notice ${notice.id} already`)
    const { id, kind, channel } = notice
    if (typeof createdAt === 'string') {
      metrics.suppressed.inc({ kind, channel, reason: createdAt })
      return createdAt
    }
    metrics.accepted.inc({ kind, channel })
    const retryInMs = Math.max(0, (notice.sendAt?.getTime() ?? 0) - Date.now())
    producer.add({ id, kind, channel, retryInMs }).catch((error) => log.enqueueFailed(1, error))
    return withTimes(notice, createdAt)
  }

  /** The time of the committed row; null if its id existed already; the reason if the recipient must get nothing. */
  async function commit(
    notice: PreparedNotice,
    params: Params,
    timeoutMs: number,
  ): Promise<Date | SuppressionReason | null> {
    const [recipientHash, earlierHash] = hashesOf(notice.channel, notice.to) as [Buffer, Buffer?]
    const insert = notice.begun ? store.insertWay : store.insert
    const { to: recipient, ...facts } = notice
    const sealedParams = seal(JSON.stringify(params), notice.id)
    const hashes = { recipientHash, earlierHash }
    const traceParent = activeTraceParent()
    const creating = insert({ ...facts, recipient, ...hashes, sealedParams, traceParent })
    try {
      return await orLate(creating, timeoutMs, () => {
        throw outOfTime()
      })
    } catch (error) {
      const closeRow = () => unanswered.add(notice.id, () => abandon(notice.id))
      if (error instanceof Unavailable) creating.then(closeRow, closeRow)
      throw error
    }
  }

  return { createNotice, close: () => unanswered.close() }
}

function withTimes(notice: PreparedNotice, createdAt: Date): CreatedNotice {
  const expiresAt = new Date((notice.sendAt ?? createdAt).getTime() + notice.ttlMs)
  return { ...notice, createdAt, expiresAt }
}

const outOfTime = () =>
  new Unavailable(
    'postgresql',
    undefined,
    'postgresql gave no answer within the time limit of the request',
  )
