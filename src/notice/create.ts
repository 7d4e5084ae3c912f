/**
 * Makes a notice: seals its variables, commits its row, and puts it on the queue.
 *
 * The commit is the promise that a 202 gives. Queueing is not awaited: when it fails, or the process
 * dies before it, the reconciler finds the row. When the commit fails without a clear no (time-out,
 * connection lost), the row may still appear; nobody was promised it, so it is closed again before a
 * worker may take it, as soon as PostgreSQL answers.
 */
import type { Log } from '../base/log.ts'
import { Unavailable } from '../base/problems.ts'
import type { Secrets } from '../base/secrets.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Producer } from '../queue/producer.ts'
import type { NoticeStore } from './store.ts'

/** Variables of a template: what the caller gave, and the code. */
export type Params = Readonly<Record<string, string | number | boolean>>

export interface NoticeDraft {
  app: string
  kind: 'captcha' | 'notice'
  channel: 'sms' | 'email'
  /** Normalised: E.164 or one address. */
  to: string
  scene?: string | undefined
  template: string
  locale: string
  /** Counted from `sendAt`, where there is one. */
  ttlMs: number
  sendAt?: Date | undefined
}

/** The id an Idempotency-Key stands for. */
export interface ReservedNotice {
  id: string
  /** The request that reserved it never answered: the notice may be there already. */
  isTakenOver: boolean
}

/** Looks for a notice that an earlier request with the same Idempotency-Key may have made. */
export type FindNotice = (
  app: string,
  id: string,
) => Promise<{ createdAt: Date; expiresAt: Date } | null>

/** A notice that is about to be made. */
export type PreparedNotice = Readonly<NoticeDraft> & { readonly id: string }

/** A notice whose row is committed. */
export interface CreatedNotice extends PreparedNotice {
  readonly createdAt: Date
  readonly expiresAt: Date
}

export type CreateNotice = ReturnType<typeof createNoticeCreator>

export function createNoticeCreator(deps: {
  store: NoticeStore
  producer: Producer
  secrets: Secrets
  metrics: Metrics
  log: Log
}) {
  const { store, producer, secrets, metrics, log } = deps

  /** Resolves once the row is committed, with its times. Throws Unavailable when it could not be. */
  return async function createNotice(
    notice: PreparedNotice,
    params: Params,
  ): Promise<CreatedNotice> {
    let madeAt: Date | null
    try {
      madeAt = await store.create({
        id: notice.id,
        app: notice.app,
        kind: notice.kind,
        channel: notice.channel,
        recipient: notice.to,
        recipientHash: secrets.recipientHashes(notice.channel, notice.to)[0] as Buffer,
        scene: notice.scene ?? null,
        template: notice.template,
        locale: notice.locale,
        sealedParams: secrets.seal(JSON.stringify(params), notice.id),
        sendAt: notice.sendAt,
        ttlMs: notice.ttlMs,
      })
    } catch (error) {
      if (error instanceof Unavailable) void abandon(notice.id)
      throw error
    }
    const { id, kind, channel } = notice
    metrics.accepted.inc({ kind, channel })
    const delayMs = Math.max(0, (notice.sendAt?.getTime() ?? 0) - Date.now())
    producer.add({ id, kind, channel, delayMs }).catch((error) => log.enqueueFailed(1, error))
    const createdAt = madeAt ?? new Date()
    const expiresAt = new Date((notice.sendAt ?? createdAt).getTime() + notice.ttlMs)
    return { ...notice, createdAt, expiresAt }
  }

  /** Tries for a minute; after that the row, if there is one, meets the checks of delivery. */
  async function abandon(id: string): Promise<void> {
    for (let attempt = 0; attempt < 60; attempt++) {
      try {
        return await store.abandon([id])
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 1_000).unref())
      }
    }
  }
}
