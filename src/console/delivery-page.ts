/**
 * The delivery page: queues, workers, and each provider with its circuit breaker and its pace. All apps share them. An
 * operator of one app sees only delays and stopped providers, no counts: the counts include other apps.
 */

import { type Html, html } from '../base/html.ts'
import { fill } from '../base/words.ts'
import type { WorkerNote } from '../delivery/worker-notes.ts'
import type { WindowState } from '../limiter/index.ts'
import type { Backlog } from '../notice/backlog.ts'
import type { Browse } from '../notice/browse.ts'
import { type QueueOf, queueName } from '../notice/job.ts'
import { type RejectingRules, rejectedByCountry, typedByProvider } from './by-country.ts'
import type { ConsoleRoute, View } from './page.ts'
import { badge, duration, stateBadge, table, wordFor } from './parts.ts'

export interface Delivery extends Backlog {
  /** One note of each running worker. */
  workers: readonly WorkerNote[]
}

/** Throws Unavailable. */
export type DeliveryState = () => Promise<Delivery>

/** By name, with their paces as the policy file spells them. */
export type Providers = Readonly<Record<string, { kind: string; pace?: string | undefined }>>

const refreshMs = 5_000
/** A notice or event that waits longer is shown as late. */
export const lateSeconds = 60

export function deliveryRoute(deps: {
  deliveryState: DeliveryState
  providers: () => Providers
  /** How much of a provider's pace is used; empty for a provider without pace. */
  paceOf: (provider: string) => Promise<readonly WindowState[]>
  notices: Pick<Browse, 'latestByProvider' | 'latestTaken' | 'latestTyped'>
  rejectingRules: RejectingRules
}): ConsoleRoute {
  return {
    method: 'get',
    path: '/delivery',
    async run({ view }) {
      const { words } = view
      const { delivery, nav } = words
      const providers = Object.entries(deps.providers())
      const seesAll = view.operator.apps === undefined
      const [state, latest, taken, typed, paces] = await Promise.all([
        deps.deliveryState(),
        deps.notices.latestByProvider(view.operator.apps),
        deps.notices.latestTaken(view.operator.apps),
        deps.notices.latestTyped(view.operator.apps),
        Promise.all(providers.map(([name]) => (seesAll ? deps.paceOf(name) : []))),
      ])
      const rows = providers.map(([name, { kind, pace }], at) => [
        name,
        kind,
        breakerOf(view, name, state.workers),
        paceText(view, pace, paces[at] ?? []),
        latest
          .filter(({ provider }) => provider === name)
          .map((one) => html`${stateBadge(view, one.state)} ${one.count} `),
      ])
      const heads = [delivery.kind, delivery.breaker, delivery.pace, delivery.latest]
      const queued = html`<section><h2>${delivery.queues}</h2>${queues(view, state)}
<p class="hint">${delivery.noFailed} <a href="/notices?state=failed">${delivery.failedNotices}</a>.</p></section>`
      const body = html`<h1>${nav.delivery}</h1>${delays(view, state)}
${seesAll && queued}
<section><h2>${delivery.providers}</h2>${table(view, delivery.providers, [words.notices.provider, ...heads], rows, '')}</section>
${typedByProvider(view, typed)}
${rejectedByCountry(view, taken, deps.rejectingRules)}`
      return { kind: 'page', title: nav.delivery, nav: 'delivery', body, refreshMs }
    },
  }
}

/** The longest waits, the running workers and the stopped providers. */
function delays(view: View, state: Delivery): Html {
  const { words, language, operator } = view
  const { delivery } = words
  const tiles = [
    ...state.oldestOpen.map(
      ({ kind, value }) => [`${delivery.oldest} · ${words.notices.kinds[kind]}`, value] as const,
    ),
    [delivery.oldestEvent, state.oldestEventSeconds] as const,
  ]
  const kept = new Set(state.workers.flatMap(({ providers }) => awayIn(providers)))
  const isQuiet =
    tiles.every(([, seconds]) => seconds < lateSeconds) &&
    state.workers.length > 0 &&
    kept.size === 0
  const shown = tiles.map(([label, seconds]) => {
    const text = seconds < 1 ? delivery.noneWaits : duration(view, seconds * 1_000)
    const isLate = seconds >= lateSeconds
    return html`<li>${label}<b>${isLate ? badge('bad', 'clock', text) : badge('good', 'check', text)}</b></li>`
  })
  const n = state.workers.length
  const workers = n === 0 ? delivery.noWorkers : fill(delivery.workers, language, { n })
  return html`<p>${isQuiet ? badge('good', 'check', words.search.quiet) : ''}
${badge(state.workers.length > 0 ? 'good' : 'bad', state.workers.length > 0 ? 'check' : 'cross', workers)}
${[...kept].map((name) => badge('bad', 'stop', `${name}: ${delivery.states.circuit}`))}</p>
<ul class="tiles">${shown}${operator.apps === undefined && html`<li>${delivery.scheduled}<b>${state.scheduled}</b></li>`}</ul>
${operator.apps && html`<p class="hint">${delivery.ofAllApps}</p>`}`
}

const awayIn = (providers: WorkerNote['providers']) =>
  Object.entries(providers).flatMap(([name, state]) => (state === 'circuit' ? [name] : []))

function queues(view: View, { depths }: Delivery): Html {
  const { delivery, notices } = view.words
  const states = Object.keys(delivery.jobs) as (keyof typeof delivery.jobs)[]
  const rows = depths
    .filter(({ state }) => state === 'waiting')
    .map((queue) => [
      wordFor(notices.channels, queue.channel),
      wordFor(notices.kinds, queue.kind),
      ...states.map((state) => {
        const isAsked = (one: QueueOf & { state: string }) =>
          queueName(one) === queueName(queue) && one.state === state
        return depths.find(isAsked)?.value ?? 0
      }),
    ])
  const heads = [delivery.channel, delivery.kind, ...states.map((state) => delivery.jobs[state])]
  return table(view, delivery.queues, heads, rows, '')
}

/** Each worker has its own circuit breaker, so one worker may stop using a provider while others go on. */
function breakerOf(view: View, name: string, workers: readonly WorkerNote[]) {
  const { words, language } = view
  const { delivery } = words
  const said = workers.flatMap(({ providers }) => providers[name] ?? [])
  if (said.length === 0) return html`<span class="quiet">${delivery.noWord}</span>`
  return (['circuit', 'paused', 'ready'] as const).map((state) => {
    const count = said.filter((one) => one === state).length
    const [tone, shape] =
      state === 'ready' ? (['good', 'check'] as const) : (['bad', 'stop'] as const)
    const share = fill(delivery.ofWorkers, language, { some: count, all: said.length })
    return (
      count > 0 &&
      html`${badge(tone, shape, delivery.states[state])} <span class="quiet">${share}</span> `
    )
  })
}

function paceText(
  { words: { delivery } }: View,
  pace: string | undefined,
  windows: readonly WindowState[],
): Html {
  if (pace === undefined) return html`<span class="quiet">${delivery.noPace}</span>`
  const used = windows.map(({ used, limit }) => `${used} / ${limit}`).join(', ')
  return html`${pace} <span class="quiet">${used}</span>`
}
