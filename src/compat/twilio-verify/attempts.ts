/** Lists of verification attempts, and their sums. A notice with a code is one attempt. */
import type { PosternCalls } from '../../http/in-process.ts'
import type { NoticeView } from '../../http/notice-reads.ts'
import type { Answer } from '../../http/problem.ts'
import type { Asked, Services } from './asked.ts'
import { channelNamed, nameOf } from './channels.ts'
import { fault, faultOf } from './faults.ts'
import { noticeIdOf, sidOf } from './sids.ts'

const maxPageSize = 100
const defaultPageSize = 50

/** Notices have no country, so a list that ignores it would be wrong. */
const unsupported = ['Country', 'DestinationPrefix']

export function createAttempts(postern: PosternCalls, services: Services) {
  /** The service of each scene of an app. */
  const servicesOf = (app: string, wanted: string | undefined) =>
    new Map(
      Object.entries(services)
        .filter(([sid, service]) => service.app === app && (wanted ?? sid) === sid)
        .map(([sid, { scene }]) => [scene, sid]),
    )

  /** The filter for searches, or the answer to a wrong query. */
  function filterOf({ account: { app }, query }: Asked) {
    const texts: Record<string, string> = {}
    for (const [name, value] of Object.entries(query)) {
      if (unsupported.includes(name)) return fault(60200, `${name} is not supported`)
      if (typeof value !== 'string') return fault(60200, `${name.slice(0, 100)} is there twice`)
      texts[name] = value
    }
    const { Channel, Status, DateCreatedAfter: from, DateCreatedBefore: before } = texts
    const to = texts['ChannelData.To']
    const channel = Channel === undefined ? undefined : channelNamed(Channel)
    const scenes = servicesOf(app, texts.VerifyServiceSid)
    const isConverted = Status?.toLowerCase()
    if (isConverted && isConverted !== 'converted' && isConverted !== 'unconverted') {
      return fault(60200, 'Status')
    }
    return {
      texts,
      scenes,
      // No attempt was ever made on another channel, or for another service.
      isEmpty: scenes.size === 0 || (Channel !== undefined && !channel),
      filter: {
        app,
        kind: 'captcha' as const,
        scenes: [...scenes.keys()],
        ...(channel ? { channel } : {}),
        ...(to ? { to } : {}),
        ...(from ? { from: timeIn(from) } : {}),
        ...(before ? { before: timeIn(before) } : {}),
        ...(isConverted ? { hasPassed: isConverted === 'converted' } : {}),
      },
    }
  }

  async function list(asked: Asked): Promise<Answer> {
    const found = filterOf(asked)
    if ('status' in found) return found
    const { texts, scenes, filter, isEmpty } = found
    const { PageSize = String(defaultPageSize), Page = '0', PageToken, VerificationSid } = texts
    if (!/^[1-9]\d{0,3}$/.test(PageSize)) return fault(60200, 'PageSize')
    if (!/^\d{1,9}$/.test(Page)) return fault(60200, 'Page')
    const limit = Math.min(Number(PageSize), maxPageSize)
    // Later pages have a token. A client that counts pages without tokens must come to an end.
    if (isEmpty || (Number(Page) > 0 && !PageToken)) return pageOf(asked, texts, limit, [])
    if (VerificationSid !== undefined) {
      const one = await findOne(asked, scenes, VerificationSid)
      return 'status' in one ? one : pageOf(asked, texts, limit, one.items)
    }
    const page = await postern.searchNotices({
      ...filter,
      limit,
      ...(PageToken ? { cursor: PageToken } : {}),
    })
    if (page.outcome !== 'found') return faultOf(page, 60202)
    const items = page.items.map((item) => attemptOf(asked, scenes, item))
    return pageOf(asked, texts, limit, items, page.nextCursor)
  }

  async function findOne(asked: Asked, scenes: Map<string, string>, sid: string) {
    const { app } = asked.account
    const found = await postern.findNotice({ app, id: noticeIdOf('VE', sid) ?? 'none' })
    if (found.outcome === 'unavailable') return fault(20503)
    const isOurs = found.outcome === 'found' && scenes.has(found.notice.scene ?? '')
    return { items: isOurs ? [attemptOf(asked, scenes, found.notice)] : [] }
  }

  async function summary(asked: Asked): Promise<Answer> {
    const found = filterOf(asked)
    if ('status' in found) return found
    const counted = found.isEmpty
      ? ({ outcome: 'found', total: 0, passed: 0 } as const)
      : await postern.countNotices({ ...lastDayOf(found.filter, postern.nowMs()), ...found.filter })
    if (counted.outcome !== 'found') return faultOf(counted, 60202)
    const { total, passed } = counted
    return {
      status: 200,
      body: {
        total_attempts: total,
        total_converted: passed,
        total_unconverted: total - passed,
        conversion_rate_percentage: String(
          total === 0 ? 0 : Math.round((passed / total) * 10_000) / 100,
        ),
        url: asked.urlOf('/v2/Attempts/Summary'),
      },
    }
  }

  return { list, summary }
}

const dayMs = 86_400_000

/**
 * The start of a count that names none: one day before its end, because a count reads every row of its time. A count
 * for one recipient reads few rows and needs no start.
 */
function lastDayOf(
  { to, before }: { to?: string; before?: string },
  nowMs: number,
): { from?: string } {
  const endMs = before === undefined ? nowMs : Date.parse(before)
  if (to !== undefined || Number.isNaN(endMs)) return {}
  return { from: new Date(Math.max(0, endMs - dayMs)).toISOString() }
}

/**
 * Twilio's own form has seconds. Other forms of RFC 3339 are read too; a wrong one is refused by the search. Twilio's times
 * are UTC, so a time without a zone is UTC too (https://www.twilio.com/docs/verify/api/list-verification-attempts).
 */
function timeIn(text: string): string {
  const hasNoZone = /^\d{4}-\d\d-\d\dT[\d:.]+$/.test(text)
  const isTime = hasNoZone || /^\d{4}-\d\d-\d\d(T|$)/.test(text)
  const ms = isTime ? Date.parse(hasNoZone ? `${text}Z` : text) : Number.NaN
  return Number.isNaN(ms) ? text : new Date(ms).toISOString()
}

function attemptOf({ account, urlOf }: Asked, scenes: Map<string, string>, item: NoticeView) {
  const sid = sidOf('VL', item.id)
  return {
    sid,
    account_sid: account.sid,
    service_sid: scenes.get(item.scene ?? '') ?? null,
    verification_sid: sidOf('VE', item.id),
    date_created: item.createdAt,
    date_updated: item.finishedAt ?? item.sentAt ?? item.createdAt,
    conversion_status: item.codeEnd === 'passed' ? 'converted' : 'unconverted',
    channel: nameOf(item.channel),
    price: null,
    channel_data: { to: item.to, message_status: item.state },
    url: urlOf(`/v2/Attempts/${sid}`),
  }
}

function pageOf(
  { urlOf }: Asked,
  texts: Readonly<Record<string, string>>,
  limit: number,
  attempts: readonly unknown[],
  nextCursor?: string,
): Answer {
  const { Page = '0', PageToken: _, ...filter } = texts
  const page = Number(Page)
  const at = (more: Readonly<Record<string, string>>) =>
    urlOf(`/v2/Attempts?${new URLSearchParams({ ...filter, PageSize: String(limit), ...more })}`)
  const next = nextCursor && at({ Page: String(page + 1), PageToken: nextCursor })
  return {
    status: 200,
    body: {
      attempts,
      meta: {
        key: 'attempts',
        page,
        page_size: limit,
        first_page_url: at({ Page: '0' }),
        previous_page_url: null,
        next_page_url: next ?? null,
        url: at(texts.PageToken ? { Page, PageToken: texts.PageToken } : { Page }),
      },
    },
  }
}
