import type { z } from 'zod'
import type { Channel } from '../base/channel.ts'
import { isId } from '../base/ids.ts'
import { Problem } from '../base/problems.ts'
import type { NoticeRequest, SendNotice } from '../notice/send.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { NormaliseRecipient } from '../recipient/normalise-recipient.ts'
import { type CursorMarks, createCursors } from './cursor.ts'
import { viewOf } from './notice-view.ts'
import { invalid } from './problem.ts'
import { defineRoute, type Route, type RouteRequest, type SendAttempt } from './route.ts'
import {
  acceptedNotice,
  noticePage,
  noticeView,
  searchNoticesBody,
  sendNoticeBody,
} from './schemas/notices.ts'
import { acceptedAnswer } from './send-answer.ts'
import { contentOf, invalidRecipient, originOf, recipientOf, type Sendable } from './send-body.ts'

export function noticeRoutes(
  deps: Sendable & {
    sendNotice: SendNotice
    store: NoticeStore
    normaliseRecipient: NormaliseRecipient
    /** The hashes under which a recipient's rows are found, by every secret in use. */
    recipientHashes: (channel: Channel, to: string) => Buffer[]
    cursorMarks: CursorMarks
    /** PostgreSQL's, because it decides when a notice is due. */
    nowMs: () => number
  },
): Route[] {
  const { sendNotice, store, normaliseRecipient, recipientHashes, nowMs } = deps
  const cursors = createCursors(deps.cursorMarks)

  /** The request as the room behind takes it, or the problem that says why not. */
  function noticeOf(
    { key, ip, body }: RouteRequest<z.infer<typeof sendNoticeBody>>,
    attempt: SendAttempt,
  ): NoticeRequest {
    const { to, country } = recipientOf(normaliseRecipient, body)
    const { locale, params } = contentOf(deps, body, { app: key.app, to, country }, [])
    const { channel, template, ttl: ttlMs } = body
    const sendAt = sendTimeOf(body.sendAt, nowMs())
    const origin = originOf(key, body.ip ?? ip, country)
    return {
      ...attempt,
      app: key.app,
      channel,
      to,
      template,
      locale,
      params,
      ttlMs,
      sendAt,
      origin,
    }
  }

  /** What was sent to may be looked for, whatever destinations are allowed now. */
  function recipientSearched(channel: Channel, to: string): string {
    const result = normaliseRecipient(channel, to)
    if (result.kind === 'invalid') throw invalidRecipient(result)
    return result.to
  }

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
      async send(request, attempt) {
        const outcome = await sendNotice.send(noticeOf(request, attempt))
        return acceptedAnswer(request, outcome, { template: request.body.template })
      },
      async adopt(request, attempt) {
        const outcome = await sendNotice.adopt(noticeOf(request, attempt))
        return outcome && acceptedAnswer(request, outcome, { template: request.body.template })
      },
    }),

    defineRoute({
      method: 'get',
      path: '/v1/notices/:id',
      name: 'getNotice',
      summary: 'What became of a notice.',
      access: 'secret',
      answers: { 200: { description: 'The notice.', schema: noticeView } },
      problems: ['not_found'],
      async run({ key: { app }, params }) {
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
      async run({ key: { app }, body }) {
        const { to, channel, state, cursor, limit } = body
        if (to !== undefined && channel === undefined) throw invalid('channel', 'is needed with to')
        const hashes =
          to !== undefined && channel !== undefined
            ? recipientHashes(channel, recipientSearched(channel, to))
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

const furthestAheadMs = 7 * 86_400_000

/** A time that has passed means now: the caller's clock may be behind ours. */
function sendTimeOf(text: string | undefined, nowMs: number): Date | undefined {
  if (text === undefined) return undefined
  const aheadMs = Date.parse(text) - nowMs
  if (aheadMs > furthestAheadMs) throw invalid('sendAt', 'is more than 7 days ahead')
  return aheadMs > 0 ? new Date(text) : undefined
}
