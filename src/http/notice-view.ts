import type { NoticeStore } from '../notice/store.ts'
import { maskRecipient } from '../recipient/mask-recipient.ts'

type NoticeRow = NonNullable<Awaited<ReturnType<NoticeStore['find']>>>

/** A row as callers see it: recipient masked, members without a value left out. */
export function viewOf(row: NoticeRow) {
  return {
    id: row.id,
    channel: row.channel,
    to: row.recipient === null ? null : maskRecipient(row.channel, row.recipient),
    kind: row.kind,
    scene: row.scene ?? undefined,
    template: row.template,
    state: row.state,
    provider: row.provider ?? undefined,
    providerMessageId: row.providerMessageId ?? undefined,
    attempts: row.attempts,
    createdAt: row.createdAt.toISOString(),
    sendAt: row.sendAt?.toISOString(),
    expiresAt: row.expiresAt.toISOString(),
    sentAt: row.sentAt?.toISOString(),
    finishedAt: row.finishedAt?.toISOString(),
    error: row.error ?? undefined,
  }
}
