import { z } from 'zod'
import { duration } from '../../base/durations.ts'
import { noticeStates, outcomes } from '../../notice/states.ts'
import { channel, id, ip, locale, params, recipient, scene, template, time } from './words.ts'

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
      description: 'Not sent before this time, at most 7 days ahead. `ttl` counts from it.',
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
        outcome: z.enum(outcomes),
        durationMs: z.number(),
        detail: z.string().optional(),
        count: z.int().optional().meta({
          description: 'Calls with this outcome, where there were several: `at` is the first.',
        }),
        latestAt: time.optional().meta({ description: 'The latest of them.' }),
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

export const noticePage = z
  .object({
    items: z.array(noticeView),
    nextCursor: z.string().optional(),
  })
  .meta({ id: 'NoticePage' })
