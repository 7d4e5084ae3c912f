/** Reads notices, for HTTP and for calls in process: one by its id, pages, and counts. */
import { z } from 'zod'
import { type Channel, channels } from '../base/channel.ts'
import { idFloor, isId } from '../base/ids.ts'
import type { CodeEnd } from '../notice/code-end.ts'
import { type Attempt, type NoticeState, noticeKinds, noticeStates } from '../notice/states.ts'
import type { NoticeStore } from '../notice/store.ts'
import { channelsFor, maskRecipient } from '../recipient/channels.ts'
import { type NormaliseRecipient, refusedRecipient } from '../recipient/normalise-recipient.ts'
import { invalid, problemOf } from './problem.ts'
import { channel, recipient, scene, time } from './schemas.ts'

const foundBy = {
  to: recipient.optional(),
  channel: channel.optional(),
  state: z.enum(noticeStates).optional().meta({ description: 'Only notices in this state.' }),
  kind: z.enum(noticeKinds).optional().meta({ description: 'Only codes, or only notices.' }),
  scenes: z
    .array(scene)
    .min(1)
    .max(100)
    .optional()
    .meta({ description: 'Only codes for these scenes.' }),
  from: time.optional().meta({ description: 'Only notices made at this time or later.' }),
  before: time.optional().meta({ description: 'Only notices made before this time.' }),
  hasPassed: z.boolean().optional().meta({ description: 'Whether the code has passed.' }),
}

export const searchNoticesBody = z
  .strictObject({
    ...foundBy,
    cursor: z.string().min(1).max(200).optional().meta({
      description: '`nextCursor` of the page before.',
    }),
    limit: z.int().min(1).max(100).default(20).meta({ description: 'Items on a page.' }),
  })
  .meta({ id: 'SearchNotices', examples: [{ state: 'failed', limit: 20 }] })

export const countNoticesBody = z.strictObject(foundBy)

export type NoticeReads = ReturnType<typeof createNoticeReads>

export type NoticeView = ReturnType<typeof viewOf>

export interface NoticePage {
  items: NoticeView[]
  nextCursor?: string
}

export function createNoticeReads(deps: {
  store: Pick<NoticeStore, 'find' | 'search' | 'countNotices'>
  normaliseRecipient: NormaliseRecipient
  /** All hashes of a recipient that rows may carry, one per secret in use. */
  recipientHashes: (channel: Channel, to: string) => Buffer[]
  sealText: (plain: string, context: string) => string
  /** Undefined if the text was not sealed for this context. */
  unsealText: (sealed: string, context: string) => string | undefined
}) {
  const { store, normaliseRecipient, recipientHashes, sealText, unsealText } = deps

  function filterOf(app: string, asked: z.output<typeof countNoticesBody>) {
    const { to, from, before, ...same } = asked
    const filter = { app, ...same, ...rangeOf(from, before) }
    if (to === undefined) return filter
    const { channel } = asked
    const ofKind = channelsFor(to)
    // A text that is no address gets the reason of one channel.
    const first = channel ?? ofKind[0] ?? channels[0]
    const known = recipientNamed(normaliseRecipient, first, to)
    const named = channel ? [channel] : ofKind
    return { ...filter, recipientHashes: named.flatMap((each) => recipientHashes(each, known.to)) }
  }

  return {
    /** Throws Unavailable, like the other functions. */
    async findNotice(app: string, id: string): Promise<NoticeView | undefined> {
      const row = isId(id) ? await store.find(app, id) : null
      return row ? viewOf(row) : undefined
    },

    /** Throws Problem for a cursor that this app was never given. */
    async searchNotices(
      app: string,
      asked: z.output<typeof searchNoticesBody>,
    ): Promise<NoticePage> {
      const { cursor, limit, ...filter } = asked
      const context = `notices cursor of ${app}`
      const cursorId = cursor && unsealText(cursor, context)
      if (cursor && !cursorId) throw invalid('cursor', 'noCursor')
      const { items, nextId } = await store.search({
        ...filterOf(app, filter),
        ...(cursorId ? { cursorId } : {}),
        limit,
      })
      return {
        items: items.map(viewOf),
        ...(nextId ? { nextCursor: sealText(nextId, context) } : {}),
      }
    },

    countNotices: (app: string, asked: z.output<typeof countNoticesBody>) =>
      store.countNotices(filterOf(app, asked)),
  }
}

/** Ids begin with their time, so times are a range of ids. No id is older than 1970. */
const rangeOf = (from: string | undefined, before: string | undefined) => ({
  ...(from ? { from: idFloor(Math.max(0, Date.parse(from))) } : {}),
  ...(before ? { before: idFloor(Math.max(0, Date.parse(before))) } : {}),
})

/** Accepts also recipients that get no messages, because support may look them up. */
export function recipientNamed(normalise: NormaliseRecipient, channel: Channel, to: string) {
  const result = normalise(channel, to)
  if (result.kind === 'invalid') throw problemOf(refusedRecipient(result))
  return result
}

type NoticeRow = NonNullable<Awaited<ReturnType<NoticeStore['find']>>>

/** A row in the form for callers: recipient masked, empty members left out. */
export function viewOf(row: NoticeRow) {
  return {
    id: row.id,
    channel: row.channel as Channel,
    to: row.recipient === null ? null : maskRecipient(row.channel, row.recipient),
    kind: row.kind as (typeof noticeKinds)[number],
    scene: row.scene ?? undefined,
    template: row.template,
    state: row.state as NoticeState,
    codeEnd: (row.codeEnd as CodeEnd | null) ?? undefined,
    provider: row.provider ?? undefined,
    providerMessageId: row.providerMessageId ?? undefined,
    attempts: (row.attempts as unknown as Attempt[]).map(({ kind: _, ...attempt }) => attempt),
    createdAt: row.createdAt.toISOString(),
    sendAt: row.sendAt?.toISOString(),
    expiresAt: row.expiresAt.toISOString(),
    sentAt: row.sentAt?.toISOString(),
    finishedAt: row.finishedAt?.toISOString(),
    error: row.error ?? undefined,
  }
}
