/** Routes of notices: send one, read its state, search. */
import { z } from 'zod'
import { duration } from '../base/durations.ts'
import { Problem } from '../base/problems.ts'
import { words } from '../base/words.ts'
import { codeEnds } from '../notice/code-end.ts'
import type { SendNotice } from '../notice/send.ts'
import { attemptOutcomes, noticeKinds, noticeStates } from '../notice/states.ts'
import { type NoticeReads, searchNoticesBody } from './notice-reads.ts'
import { answerSend, defineRoute, type Route } from './route.ts'
import {
  acceptedNotice,
  channel,
  id,
  ip,
  locale,
  params,
  recipient,
  scene,
  template,
  time,
} from './schemas.ts'

/** An open notice is tried again and again, and its week of rows is kept, so an app may not keep it open for years. */
const longestTtlMs = 30 * 86_400_000

export const sendNoticeBody = z
  .strictObject({
    channel,
    ip: ip.optional(),
    to: recipient,
    template,
    params,
    locale: locale.optional(),
    ttl: duration
      .refine((ms) => ms <= longestTtlMs, words.en.fields.tooLongTtl)
      .optional()
      .meta({
        description:
          'A duration such as `60s`, `5m`, `1h` or `7d`, at most `30d`. After this time the message is not sent.',
      }),
    sendAt: time.optional().meta({
      description: 'The earliest time to send, at most 7 days ahead. `ttl` counts from it.',
    }),
  })
  .meta({
    id: 'SendNotice',
    examples: [
      { channel: 'email', to: 'ada@example.com', template: 'welcome', params: { name: 'Ada' } },
    ],
  })

export const noticeView = z
  .object({
    id,
    channel,
    to: z.string().nullable().meta({ description: 'Masked; null once erased.' }),
    kind: z.enum(noticeKinds),
    scene: scene.optional(),
    template,
    state: z.enum(noticeStates),
    codeEnd: z.enum(codeEnds).optional().meta({
      description:
        'How the code ended: it passed, used up its tries or was canceled. Absent before, and for a code that expired or was replaced.',
    }),
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
        againAt: time.optional().meta({
          description:
            'For `postponed`: the provider is not called with the notice before this time.',
        }),
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
    nextCursor: z.string().optional().meta({
      description:
        'Absent on the last page. A page without `to` can have fewer items than `limit`.',
    }),
  })
  .meta({ id: 'NoticePage' })

export function noticeRoutes(deps: {
  sendNotice: SendNotice
  findNotice: NoticeReads['findNotice']
  searchNotices: NoticeReads['searchNotices']
}): Route[] {
  const { sendNotice, findNotice, searchNotices } = deps

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
      run: (request) => answerSend(request, sendNotice),
    }),

    defineRoute({
      method: 'get',
      path: '/v1/notices/:id',
      name: 'getNotice',
      summary: 'Read the state of a notice.',
      access: 'secret',
      isRead: true,
      answers: { 200: { description: 'The notice.', schema: noticeView } },
      problems: ['not_found'],
      async run({ caller: { app }, params }) {
        const notice = await findNotice(app, params.id ?? '')
        if (!notice) throw new Problem('not_found')
        return { status: 200, body: notice }
      },
    }),

    defineRoute({
      method: 'post',
      path: '/v1/notices/search',
      name: 'searchNotices',
      summary: 'Find notices, newest first. A recipient travels in the body, never in a URL.',
      access: 'secret',
      isRead: true,
      body: searchNoticesBody,
      answers: { 200: { description: 'One page.', schema: noticePage } },
      problems: ['invalid_recipient'],
      run: async ({ caller: { app }, body }) => ({
        status: 200,
        body: await searchNotices(app, body),
      }),
    }),
  ]
}
