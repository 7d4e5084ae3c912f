/**
 * The list of notices, filtered by state, kind, template, provider and time, with a link to each story.
 *
 * A page may end at a notice of another app, which the search only passed. So the cursor of the next page is sealed, and
 * only operators of every app see how many notices were searched.
 */

import { type Html, html } from '../base/html.ts'
import { idFloor } from '../base/ids.ts'
import { fill } from '../base/words.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Browse } from '../notice/browse.ts'
import { type NoticeState, noticeStates } from '../notice/states.ts'
import type { Providers } from './delivery-page.ts'
import type { ConsoleRoute, Given, View } from './page.ts'
import { errorText, masked, pager, stateBadge, table, time, wordFor } from './parts.ts'

const agesMs = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000, all: undefined } as const
type Age = keyof typeof agesMs

const kinds = ['captcha', 'notice'] as const
const perPage = 50
const cursorContext = 'console notices cursor'
const refreshMs = 10_000

interface Filter {
  state: NoticeState | undefined
  kind: (typeof kinds)[number] | undefined
  template: string | undefined
  provider: string | undefined
  age: Age
  untilMs: number | undefined
  cursor: string | undefined
}

interface NoticesDeps {
  notices: Pick<Browse, 'browse'>
  secrets: Pick<Secrets, 'sealText' | 'unsealText'>
  /** Names of all templates. */
  templates: readonly string[]
  providers: () => Providers
}

export function noticesRoute(deps: NoticesDeps): ConsoleRoute {
  const { secrets } = deps
  return {
    method: 'get',
    path: '/notices',
    async run({ view, query }) {
      const { words, language } = view
      const filter = readFilter(query, secrets)
      const { age, untilMs, cursor, ...fixed } = filter
      const ageMs = agesMs[age]
      const page = await deps.notices.browse({
        ...fixed,
        apps: view.operator.apps,
        from: ageMs === undefined ? idFloor(0) : idFloor(view.nowMs - ageMs),
        before: cursor ?? (untilMs === undefined ? lastId : idFloor(untilMs)),
        limit: perPage,
      })
      const next = page.next && secrets.sealText(page.next, cursorContext)
      const lookedAt = view.operator.apps ? undefined : page.lookedAt
      const { notices } = words
      const heads = [notices.time, notices.state, notices.kind, notices.to, notices.template]
      const rows = page.items.map((notice) => [
        html`<a href="/notices/${notice.id}">${time(notice.createdAt)}</a>`,
        stateBadge(view, notice.state),
        html`<span class="kind">${wordFor(notices.kinds, notice.kind)} · ${wordFor(notices.channels, notice.channel)}</span>`,
        html`<span class="to">${masked(view, notice.channel, notice.recipient)}</span>`,
        notice.template,
        notice.app,
        notice.provider ?? '',
        errorText(view, notice.error),
      ])
      const body = html`<h1>${words.nav.notices}</h1>${form(view, filter, deps)}
${table(view, words.nav.notices, [...heads, notices.app, notices.provider, notices.why], rows, notices.none)}
${lookedAt !== undefined && html`<p class="hint">${fill(notices.lookedAt, language, { n: lookedAt })}</p>`}
${pager(view, '/notices', searchOf(query), next)}`
      return { kind: 'page', title: words.nav.notices, nav: 'notices', body, refreshMs }
    },
  }
}

const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Ignores values that it cannot read: an address that was cut off shows more notices, not an error. */
function readFilter(query: Given, secrets: NoticesDeps['secrets']): Filter {
  const { state, kind, template, provider, age, until, cursor } = query
  const untilMs = Date.parse(`${until}Z`)
  return {
    state: noticeStates.find((one) => one === state),
    kind: kinds.find((one) => one === kind),
    template: isName(template) ? template : undefined,
    provider: isName(provider) ? provider : undefined,
    age: isAge(age) ? age : 'day',
    untilMs: untilMs > 0 && untilMs < endOfIdsMs ? untilMs : undefined,
    cursor: secrets.unsealText(cursor ?? '', cursorContext),
  }
}

/** Accepts also names that the policy file no longer has. */
const isName = (text: string | undefined) => /^[\w.-]{1,64}$/.test(text ?? '')

/** The time in an id has 48 bits. */
const endOfIdsMs = 2 ** 48

const isAge = (text: string | undefined): text is Age =>
  text !== undefined && Object.hasOwn(agesMs, text)

function searchOf(query: Given): URLSearchParams {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value)
  return search
}

function form({ words }: View, filter: Filter, { templates, providers }: NoticesDeps): Html {
  const { notices, states } = words
  const { state, kind, template, provider, age, untilMs } = filter
  const any = ['', notices.any] as const
  const named = (names: readonly string[]) => names.map((name) => [name, name] as const)
  const until = untilMs === undefined ? '' : new Date(untilMs).toISOString().slice(0, 16)
  return html`<form class="filter" method="get" action="/notices" data-keep>
${select('state', notices.state, state, [any, ...Object.entries(states)])}
${select('kind', notices.kind, kind, [any, ...Object.entries(notices.kinds)])}
${select('template', notices.template, template, [any, ...named(templates)])}
${select('provider', notices.provider, provider, [any, ...named(Object.keys(providers()))])}
${select('age', notices.time, age, Object.entries(notices.ages))}
<label>${notices.until}<input type="datetime-local" name="until" value="${until}"></label>
<button>${notices.filter}</button></form>`
}

function select(
  name: string,
  label: string,
  chosen: string | undefined,
  options: readonly (readonly [value: string, text: string])[],
): Html {
  return html`<label>${label}<select name="${name}">${options.map(
    ([value, text]) =>
      html`<option value="${value}"${value === (chosen ?? '') && html` selected`}>${text}</option>`,
  )}</select></label>`
}
