/** Routes of notices: send one, read its state, search. */
import { z } from 'zod'
import type { Channel } from '../base/channel.ts'
import { duration } from '../base/durations.ts'
import { isId } from '../base/ids.ts'
import { Problem } from '../base/problems.ts'
import type { SendOutcome } from '../notice/message.ts'
import type { SendNotice } from '../notice/send.ts'
import { attemptOutcomes, noticeStates } from '../notice/states.ts'
import type { NoticeStore } from '../notice/store.ts'
import { maskRecipient } from '../recipient/mask-recipient.ts'
import { type NormaliseRecipient, refusedRecipient } from '../recipient/normalise-recipient.ts'
import { invalid, problemOf } from './problem.ts'
import type { RouteResult } from './respond.ts'
import { defineRoute, type Route, type RouteRequest } from './route.ts'
import { channel, id, ip, locale, params, recipient, scene, template, time } from './schemas.ts'

export const sendNoticeBody = z
  .strictObject({
    channel,
    ip: ip.optional(),
    to: recipient,
    template,
    params,
    locale: locale.optional(),
    ttl: duration.optional().meta({
      description: 'A duration such as `60s`, `5m`, `1h` or `7d`. Not sent after it.',
    }),
    sendAt: time.optional().meta({
      description: 'The earliest time to send, at most 7 days ahead. `ttl` counts from it.',
    }),
  })
  .meta({ id: 'SendNotice' })

export const searchNoticesBody = z
  .strictObject({
    to: recipient.optional(),
    channel: channel.optional(),
    state: z.enum(noticeStates).optional().meta({ description: 'Only notices in this state.' }),
    cursor: z.string().min(1).max(200).optional().meta({
      description: '`nextCursor` of the page before.',
    }),
    limit: z.int().min(1).max(100).default(20).meta({ description: 'Items on a page.' }),
  })
  .meta({ id: 'SearchNotices' })

export const acceptedNotice = z
  .object({
    id,
    channel,
    to: z.string().meta({ description: 'Masked.' }),
    template,
    state: z.literal('pending'),
    expiresAt: time,
    resendAt: time.meta({ description: 'From then on the limits admit the same request again.' }),
  })
  .meta({ id: 'AcceptedNotice' })

export const noticeView = z
  .object({
    id,
    channel,
    to: z.string().nullable().meta({ description: 'Masked; null once erased.' }),
    kind: z.enum(['captcha', 'notice']),
    scene: scene.optional(),
    template,
    state: z.enum(noticeStates),
    provider: z.string().optional(),
    providerMessageId: z.string().optional(),
    attempts: z.array(
      z.object({
        provider: z.string().nullable(),
        at: time,
        outcome: z.enum(attemptOutcomes),
        durationMs: z.number(),
        detail: z.string().optional(),
        count: z.int().optional().meta({
          description:
            'The number of calls with this outcome, if more than one. `at` is the first call.',
        }),
        latestAt: time.optional().meta({ description: 'The time of the latest call.' }),
      }),
    ),
    createdAt: time,
    sendAt: time.optional(),
    expiresAt: time,
    sentAt: time.optional(),
    finishedAt: time.optional(),
    error: z.string().optional(),
  })
  .meta({ id: 'Notice' })

const noticePage = z
  .object({
    items: z.array(noticeView),
    nextCursor: z.string().optional(),
  })
  .meta({ id: 'NoticePage' })

export function noticeRoutes(deps: {
  sendNotice: SendNotice
  store: Pick<NoticeStore, 'find' | 'search'>
  normaliseRecipient: NormaliseRecipient
  /** All hashes of a recipient that rows may carry, one per secret in use. */
  recipientHashes: (channel: Channel, to: string) => Buffer[]
  cursorMarks: CursorMarks
}): Route[] {
  const { sendNotice, store, normaliseRecipient, recipientHashes } = deps
  const cursors = createCursors(deps.cursorMarks)

  return [
    defineRoute({
      method: 'post',
      path: '/v1/notices',
      name: 'sendNotice',
      summary: 'Send a notice.',
      access: 'secret',
      body: sendNoticeBody,
      answers: { 202: { description: 'Accepted: it will be sent.', schema: acceptedNotice } },
      problems: ['invalid_recipient', 'destination_not_allowed', 'limited', 'locked'],
      isSend: true,
      async run(request) {
        const asked = { ...request.body, idempotencyKey: idempotencyKeyOf(request) }
        return acceptedAnswer(request, await sendNotice(asked, request.caller))
      },
    }),

    defineRoute({
      method: 'get',
      path: '/v1/notices/:id',
      name: 'getNotice',
      summary: 'Read the state of a notice.',
      access: 'secret',
      answers: { 200: { description: 'The notice.', schema: noticeView } },
      problems: ['not_found'],
      async run({ caller: { app }, params }) {
        const id = params.id ?? ''
        const row = isId(id) ? await store.find(app, id) : null
        if (!row) throw new Problem('not_found')
        return { status: 200, body: viewOf(row) }
      },
    }),

    defineRoute({
      method: 'post',
      path: '/v1/notices/search',
      name: 'searchNotices',
      summary: 'Find notices, newest first. A recipient travels in the body, never in a URL.',
      access: 'secret',
      body: searchNoticesBody,
      answers: { 200: { description: 'One page.', schema: noticePage } },
      problems: ['invalid_recipient'],
      async run({ caller: { app }, body }) {
        const { to, channel, state, cursor, limit } = body
        if (to !== undefined && channel === undefined) throw invalid('channel', 'is needed with to')
        const hashes =
          to !== undefined && channel !== undefined
            ? recipientHashes(channel, recipientNamed(normaliseRecipient, channel, to).to)
            : undefined
        const rows = await store.search({
          app,
          ...(hashes ? { recipientHashes: hashes } : {}),
          ...(channel ? { channel } : {}),
          ...(state ? { state } : {}),
          ...(cursor ? { before: cursors.read(app, cursor) } : {}),
          limit: limit + 1,
        })
        const items = rows.slice(0, limit)
        const last = items.at(-1)
        return {
          status: 200,
          body: {
            items: items.map(viewOf),
            ...(rows.length > limit && last ? { nextCursor: cursors.write(app, last.id) } : {}),
          },
        }
      },
    }),
  ]
}

export function idempotencyKeyOf({ headers }: Pick<RouteRequest, 'headers'>): string | undefined {
  const key = headers['idempotency-key'] as string | undefined
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw invalid('Idempotency-Key', 'is 1 to 255 visible ASCII characters')
}

/** Accepts also recipients that get no messages, because support may look them up. */
export function recipientNamed(normalise: NormaliseRecipient, channel: Channel, to: string) {
  const result = normalise(channel, to)
  if (result.kind === 'invalid') throw problemOf(refusedRecipient(result))
  return result
}

/** The 202 answer to a send. */
export function acceptedAnswer(
  { basePath, body, note }: RouteRequest<{ template: string }>,
  sent: SendOutcome,
): RouteResult {
  if (sent.outcome !== 'accepted') return sent
  const { outcome: _, ...accepted } = sent
  const { id, channel } = accepted
  note({ noticeId: id, channel, template: body.template })
  return { status: 202, headers: { location: `${basePath}/v1/notices/${id}` }, body: accepted }
}

type NoticeRow = NonNullable<Awaited<ReturnType<NoticeStore['find']>>>

/** A row in the form for callers: recipient masked, empty members left out. */
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

/** The marks of these values by every secret in use, newest first. */
type CursorMarks = (values: readonly string[]) => string[]

function createCursors(marks: CursorMarks) {
  const marksOf = (app: string, id: string) => marks([app, id])
  return {
    write: (app: string, id: string): string => `${id}.${marksOf(app, id)[0]}`,

    /** Returns the id. Throws Problem if this app was never given the cursor. */
    read(app: string, cursor: string): string {
      const [id = '', mark = '', ...rest] = cursor.split('.')
      if (!isId(id) || rest.length > 0 || !marksOf(app, id).includes(mark)) {
        throw invalid('cursor', 'is not a cursor of this app')
      }
      return id
    },
  }
}
