/** Small parts of pages. None of them shows a code, and all mask recipients. */

import { inRoughUnits } from '../base/durations.ts'
import { type Html, html, type Part } from '../base/html.ts'
import { shortTime } from '../base/words.ts'
import { maskRecipient } from '../recipient/channels.ts'
import type { View } from './page.ts'

/** The word for a name in a row of the database. A name that only a newer build knows is shown unchanged. */
export function wordFor(of: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(of, name) ? (of[name] as string) : name
}

/** The meaning of a colour. A shape and a word always show the same meaning. */
export type Tone = 'good' | 'bad' | 'wait' | 'plain'

const shapes = {
  check: 'M5 13l4 4L19 7',
  cross: 'M6 6l12 12M18 6L6 18',
  clock: 'M12 7v5l3 3M12 3a9 9 0 1 0 .01 0',
  lock: 'M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5z',
  stop: 'M8 3h8l5 5v8l-5 5H8l-5-5V8zM7 12h10',
  send: 'M3 12h15M12 5l7 7-7 7',
  ask: 'M4 5h16v11H9l-5 4z',
  hand: 'M4 20l4-1L19 8l-3-3L5 16zM14 7l3 3',
  eye: 'M2 12s4-6 10-6 10 6 10 6-4 6-10 6-10-6-10-6zM12 9a3 3 0 1 0 .01 0',
  human: 'M12 4a4 4 0 1 0 .01 0M4 21a8 8 0 0 1 16 0',
} as const

export type Shape = keyof typeof shapes

export const icon = (shape: Shape): Html =>
  html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="${shapes[shape]}"/></svg>`

export const badge = (tone: Tone, shape: Shape, text: string): Html =>
  html`<span class="badge ${tone}">${icon(shape)}${text}</span>`

const lookOfState: Readonly<Record<string, readonly [Tone, Shape]>> = {
  pending: ['wait', 'clock'],
  sending: ['wait', 'send'],
  sent: ['good', 'send'],
  delivered: ['good', 'check'],
  failed: ['bad', 'cross'],
  expired: ['bad', 'clock'],
}

export function stateBadge({ words }: View, state: string): Html {
  const [tone, shape] = lookOfState[state] ?? ['plain', 'ask']
  return badge(tone, shape, wordFor(words.states, state))
}

/** A time in UTC. The script of the page rewrites it in the time zone of the browser. */
export function time(at: Date): Html {
  const iso = at.toISOString()
  const utc = `${iso.slice(0, 10)} ${iso.slice(11, 19)}`
  return html`<time datetime="${iso}" title="${iso.slice(0, 10)} ${iso.slice(11, 23)} UTC">${utc}</time>`
}

export const masked = (view: View, channel: string, to: string | null): string =>
  to === null ? view.words.notices.erased : maskRecipient(channel, to)

/** The error of a notice in words, followed by the provider's text. */
export function errorText({ words }: View, error: string | null): string {
  if (!error) return ''
  const at = error.indexOf(' ')
  const name = at < 0 ? error : error.slice(0, at)
  return `${wordFor(words.errors, name)}${at < 0 ? '' : error.slice(at)}`
}

export const csrfField = ({ csrf }: View): Html =>
  html`<input type="hidden" name="csrf" value="${csrf}">`

export const numberText = ({ language }: View, value: number): string =>
  value.toLocaleString(language)

/** A duration, rounded up: `41 s`, `15 min`, `2 h`. */
export const duration = ({ language }: View, ms: number): string =>
  shortTime(inRoughUnits(ms), language)

/** A table, shown as cards on a phone. Each row has as many cells as there are heads. */
export function table(
  view: View,
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly Part[])[],
  none: string,
): Html {
  if (rows.length === 0) return html`<p class="quiet">${none}</p>`
  const classOf = (part: Part) => typeof part === 'number' && html` class="number"`
  const shown = (part: Part) => (typeof part === 'number' ? numberText(view, part) : part)
  const cell = (part: Part, at: number) =>
    html`<td data-head="${heads[at]}"${classOf(part)}>${part !== '' && html`<span>${shown(part)}</span>`}</td>`
  return html`<table><caption class="unseen">${caption}</caption>
<thead><tr>${heads.map((head, at) => html`<th scope="col"${classOf(rows[0]?.[at])}>${head}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map(cell)}</tr>`)}</tbody></table>`
}

/** Links to the first page and the next page, where they exist. */
export function pager({ words }: View, path: string, query: URLSearchParams, next?: string): Html {
  const isFirst = !query.has('cursor')
  if (isFirst && next === undefined) return html``
  const first = new URLSearchParams(query)
  first.delete('cursor')
  const rest = new URLSearchParams(first)
  if (next !== undefined) rest.set('cursor', next)
  return html`<p class="pager">${!isFirst && html`<a href="${path}?${first.toString()}">${words.notices.first}</a>`}
${next !== undefined && html`<a href="${path}?${rest.toString()}">${words.notices.next}</a>`}</p>`
}

/** The search field: large on the first page, small above each story (`of`). In a story, an empty field keeps the recipient. */
export function searchForm(
  view: View,
  { asked = '', problem, of }: { asked?: string; problem?: string | undefined; of?: string },
): Html {
  const { search } = view.words
  const isLarge = of === undefined
  const described = problem === undefined ? 'q-hint' : 'q-problem q-hint'
  return html`<form class="search${isLarge && ' large'}" method="post" action="/search" role="search" data-keep>
${csrfField(view)}${of !== undefined && html`<input type="hidden" name="of" value="${of}">`}
<label for="q">${search.label}</label>
<div class="row"><input id="q" name="q" value="${asked}" placeholder="${search.placeholder}"${isLarge && html` required`} maxlength="400"
 autocomplete="off" autocapitalize="none" spellcheck="false" aria-describedby="${described}" data-slash${isLarge && html` autofocus`}${problem !== undefined && html` aria-invalid="true"`}>
<button>${search.button}</button></div>
${problem !== undefined && html`<p class="problem" id="q-problem">${icon('cross')}${problem}</p>`}
<p class="hint" id="q-hint">${search.hint}</p>
<details><summary>${search.more}</summary>
<label for="ip">${search.ip}</label><input id="ip" name="ip" maxlength="100" autocomplete="off" aria-describedby="ip-hint">
<p class="hint" id="ip-hint">${search.ipHint}</p></details>
</form>`
}
