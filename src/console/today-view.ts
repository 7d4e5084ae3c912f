/** The first page below its search field: what is wrong now, and the figures of the last 24 hours. */

import { commandLine } from '../base/command-line.ts'
import { type Html, html } from '../base/html.ts'
import { fill, shortTime } from '../base/words.ts'
import { medianDurationMs } from '../notice/hour-counts.ts'
import type { Outcome } from '../support/decision.ts'
import type { DecisionCount } from '../support/decision-log.ts'
import { chart, type ProviderHour } from './chart.ts'
import type { Delivery } from './delivery-page.ts'
import type { CountedHour } from './last-day.ts'
import type { View } from './page.ts'
import { badge, duration, icon, numberText, table, time } from './parts.ts'
import { type Wrong, wrongNow } from './wrong-now.ts'

export interface Today {
  /** Undefined if PostgreSQL did not tell it in time. */
  delivery: Delivery | undefined
  /** Counts of the operator's apps; undefined if PostgreSQL could not count them. */
  day: readonly CountedHour[] | undefined
}

export function todayView(view: View, { delivery, day }: Today): Html {
  const { words, operator, nowMs } = view
  const wrong = wrongNow(delivery, day ?? [], nowMs)
  const decisions = (day ?? []).flatMap(({ counts }) => counts?.decisions ?? [])
  return html`<section><h2>${words.search.overview}</h2>${
    wrong.length > 0
      ? html`<ul class="findings">${wrong.map((one) => wrongOf(view, one))}</ul>`
      : delivery && html`<p>${badge('good', 'check', words.search.quiet)}</p>`
  }${delivery === undefined && html`<p class="hint">${words.search.notRead}</p>`}${operator.apps && html`<p class="hint">${words.delivery.ofAllApps}</p>`}</section>
<section><h2>${words.today.title}</h2>${figures(view, day, decisions)}</section>
<section><h2>${words.today.byProvider}</h2>${byProvider(view, day ?? [])}</section>
<section id="refused"><h2>${words.today.byRule}</h2>${byRule(view, decisions)}</section>`
}

function wrongOf({ words, language }: View, wrong: Wrong): Html {
  const { name, sinceMs, href, provider = '', percent = 0, kind = 'notice' } = wrong
  const command = commandLine('worker')
  const values = { provider, percent, kind: words.notices.kinds[kind], command }
  const title = fill(words.wrong[name].title, language, values)
  const advice = fill(words.wrong[name].advice, language, values)
  const since =
    sinceMs !== undefined &&
    html` <span class="since quiet">${words.since} ${time(new Date(sinceMs))}</span>`
  return html`<li class="bad"><span class="mark">${icon('stop')}</span><div>
<strong><a href="${href}">${title}</a></strong>${since}<p>${advice}</p></div></li>`
}

function figures(
  view: View,
  day: readonly CountedHour[] | undefined,
  decisions: readonly DecisionCount[],
): Html {
  const { words, language, operator } = view
  const { today } = words
  const counted = day?.flatMap(({ counts }) => counts ?? []) ?? []
  const ofAll = counted.flatMap(({ providers }) => providers)
  const total = (name: 'sent' | 'delivered' | 'failed') =>
    numberText(
      view,
      ofAll.reduce((all, one) => all + one[name], 0),
    )
  const median = (name: 'toProvider' | 'toReceipt') => {
    const ms = medianDurationMs(counted.map((one) => one[name]))
    return ms === undefined ? '–' : medianText(view, ms)
  }
  const ofRows = [
    [today.sent, total('sent'), '/notices?state=sent'],
    [today.delivered, total('delivered'), '/notices?state=delivered'],
    [today.failed, total('failed'), '/notices?state=failed'],
    [today.toProvider, median('toProvider')],
    [today.toReceipt, median('toReceipt')],
    [today.refused, numberText(view, sumOf(decisions, 'refused')), '#refused'],
    [today.passed, numberText(view, sumOf(decisions, 'passed'))],
  ]
  const tiles = (day ? ofRows : []).map(
    ([label, text, href]) =>
      html`<li>${href === undefined ? label : html`<a href="${href}">${label}</a>`}<b>${text}</b></li>`,
  )
  const notes = [
    operator.apps && fill(today.ofApps, language, { apps: operator.apps.join(', ') }),
    day === undefined && today.notCounted,
    day?.some(({ counts }) => counts === undefined) && today.counting,
    counted.some(({ isCut }) => isCut) && today.cut,
  ]
  return html`<ul class="tiles figures">${tiles}</ul>
${notes.map((note) => note && html`<p class="hint">${note}</p>`)}`
}

/** Exact below ten seconds, where a second matters. */
function medianText(view: View, ms: number): string {
  const { language } = view
  if (ms < 1_000) return shortTime({ count: Math.round(ms), unit: 'ms' }, language)
  if (ms < 10_000) return shortTime({ count: Math.round(ms / 100) / 10, unit: 's' }, language)
  return duration(view, ms)
}

function byProvider(view: View, day: readonly CountedHour[]): Html {
  const { today, notices } = view.words
  const hours = day.flatMap(({ atMs, counts }) =>
    (counts?.providers ?? [])
      .filter(({ provider, sent, failed }) => provider !== '' && sent + failed > 0)
      .map((one): ProviderHour => ({ atMs, ...one })),
  )
  if (hours.length === 0) return html`<p class="quiet">${today.noMessages}</p>`
  const charts = [...Map.groupBy(hours, ({ provider }) => provider)]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([provider, own]) =>
      chart(
        view,
        provider,
        own,
        day.map(({ atMs }) => atMs),
      ),
    )
  const rows = hours
    .toReversed()
    .map(({ atMs, provider, sent, delivered, failed }) => [
      time(new Date(atMs)),
      provider,
      ...[sent, delivered, failed],
    ])
  const heads = [today.hour, notices.provider, today.sent, today.delivered, today.failed]
  return html`<ul class="charts">${charts}</ul>
<details><summary>${today.numbers}</summary>${table(view, today.byProvider, heads, rows, '')}</details>`
}

function byRule(view: View, decisions: readonly DecisionCount[]): Html {
  const { today } = view.words
  const ofRules = decisions.filter(
    ({ outcome }) => outcome === 'refused' || outcome === 'challenged',
  )
  const rows = [...Map.groupBy(ofRules, ({ policy, rule }) => `${policy}.${rule}`)]
    .map(([rule, own]) => [rule, sumOf(own, 'refused'), sumOf(own, 'challenged')] as const)
    .sort(([, a], [, b]) => b - a)
  const heads = [today.rule, today.refused, today.challenged]
  return table(view, today.byRule, heads, rows, today.noRefusals)
}

const sumOf = (decisions: readonly DecisionCount[], wanted: Outcome) =>
  decisions.reduce((all, { outcome, count }) => all + (outcome === wanted ? count : 0), 0)
