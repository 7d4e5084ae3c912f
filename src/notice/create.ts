/**
 * Makes a notice: seals its variables, commits its row, and puts it on the queue.
 *
 * The commit is the promise that a 202 gives. Queueing is not awaited: when it fails, or the process
 * dies before it, the reconciler finds the row. When the commit fails without a clear no (time-out,
 * connection lost), the row may still appear; nobody was promised it, so it is closed again before a
 * worker may take it, as soon as PostgreSQL answers.
 */
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { Unavailable } from '../base/problems.ts'
import type { Secrets } from '../base/secrets.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Producer } from '../queue/producer.ts'
import type { NoticeStore, NoticeTimes } from './store.ts'

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

export interface PreparedNotice extends Readonly<NoticeDraft> {
  readonly id: string
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** `id` is that of an Idempotency-Key, where there is one. */
export function prepareNotice(
  draft: NoticeDraft,
  id: string | undefined,
  nowMs: number,
): PreparedNotice {
  const { app, kind, channel, to, scene, template, locale, ttlMs, sendAt } = draft
  return {
    id: id ?? newId(nowMs),
    app,
    kind,
    channel,
    to,
    scene,
    template,
    locale,
    ttlMs,
    sendAt,
    createdAt: new Date(nowMs),
    expiresAt: new Date((sendAt?.getTime() ?? nowMs) + ttlMs),
  }
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
  ): Promise<PreparedNotice> {
    let times: NoticeTimes | null
    try {
      times = await store.create({
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
        createdAt: notice.createdAt,
        sendAt: notice.sendAt,
        expiresAt: notice.expiresAt,
      })
    } catch (error) {
      if (error instanceof Unavailable) void abandon(notice.id)
      throw error
    }
    metrics.accepted.inc({ kind: notice.kind, channel: notice.channel })
    const delayMs = Math.max(0, (notice.sendAt?.getTime() ?? 0) - Date.now())
    producer.add({ ...notice, delayMs }).catch((error) => log.enqueueFailed(1, error))
    return { ...notice, ...times }
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
