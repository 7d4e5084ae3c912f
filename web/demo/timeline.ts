/**
 * The lanes of the limiter: one for each window of each rule. All share one time axis with now in the middle. A use is a
 * bar from its beginning to its end; bars move to the left and end at now. A refusal is a cross. A dotted line leads from
 * it to the time when the same request passes.
 *
 * All positions are attributes in per cent of the lane. A strict Content-Security-Policy allows them, and no size is
 * measured.
 */

import { barsOf } from './bars.ts'
import type { Decided, DemoState, Lane } from './demo-state.ts'
import { byId, drawList, make, setAttributes, setText } from './elements.ts'
import { clock, count, duration, text } from './texts.ts'

const spanMs = 75_000
const svg = 'http://www.w3.org/2000/svg'

export function drawLimits(state: DemoState, nowMs: number): void {
  const { followed, lanes, decisions } = state
  setText(byId('followed'), followed ? text('followed', { to: followed.to }) : text('unfollowed'))
  const observed = lanes.filter(({ mode }) => mode === 'observe')
  const enforced = lanes.filter(({ mode }) => mode !== 'observe')
  drawList(byId('lanes'), enforced, keyOf, buildLane, (element, lane) => {
    const latest = decisions.find(
      ({ refusal }) =>
        refusal?.policy === lane.policy &&
        refusal.rule === lane.rule &&
        refusal.window === lane.window,
    )
    updateLane(element, lane, latest, nowMs, state.nowMs)
  })
  drawList(byId('observed'), observed, keyOf, buildObserved, (element, lane) => {
    setText(element.querySelector('.amount'), `${count(lane.used)} / ${count(lane.limit)}`)
  })
  drawList(
    byId('decisions'),
    decisions.slice(0, 6),
    ({ atMs, asked }) => `${atMs} ${asked}`,
    buildDecision,
    undefined,
    text('noDecisions'),
  )
}

const keyOf = ({ policy, rule, window }: Lane) => `${policy} ${rule} ${window}`
const quotas = {
  sliding: 'per',
  fixed: 'per',
  bucket: 'perBucket',
  calendar: 'perCalendar',
  lockout: 'per',
} as const
const quotaOf = ({ limit, window, kind }: Lane) =>
  text(quotas[kind], { limit: count(limit), window })

function buildLane(lane: Lane): HTMLElement {
  const track = document.createElementNS(svg, 'svg')
  setAttributes(track, { class: 'track', 'aria-hidden': 'true' })
  const name = make('div', 'name', [make('b', '', lane.rule), make('span', 'quota', quotaOf(lane))])
  const element = make('li', 'lane', [name])
  element.append(track, make('div', 'left'))
  return element
}

function updateLane(
  element: HTMLElement,
  lane: Lane,
  latest: Decided | undefined,
  nowMs: number,
  readAtMs: number,
): void {
  const { limit, used, resetsInMs, lockedForMs } = lane
  const goneMs = nowMs - readAtMs
  const passesAtMs = latest?.refusal ? latest.atMs + latest.refusal.retryAfterMs : 0
  const bars = barsOf(lane, readAtMs).filter(({ toMs }) => toMs > nowMs - spanMs)
  const lockedMs = (lockedForMs ?? 0) - goneMs
  const left = Math.max(0, limit - used)
  const freeMs =
    bars.length > 0 ? Math.min(...bars.map(({ toMs }) => toMs)) - nowMs : resetsInMs - goneMs
  const isFull = left === 0 || lockedMs > 0
  element.classList.toggle('full', isFull)
  const state =
    lockedMs > 0
      ? text('lockedFor', { time: duration(lockedMs) })
      : text('left', { left: count(left), limit: count(limit) }) +
        (isFull && freeMs > 0 ? ` · ${text('freeIn', { time: duration(freeMs) })}` : '')
  setText(element.querySelector('.left'), state)

  const track = element.querySelector('.track') as SVGElement
  const shapes = [
    ...bars.map(({ fromMs, toMs }) => bar(fromMs - nowMs, lockedMs > 0 ? 0 : toMs - nowMs, 'used')),
    ...(lockedMs > 0 ? [bar(0, lockedMs, 'lock')] : []),
    ...(latest && passesAtMs > nowMs ? refusal(latest.atMs - nowMs, passesAtMs - nowMs) : []),
    shape('line', { class: 'now', x1: '50%', x2: '50%', y1: '0%', y2: '100%' }),
  ]
  track.replaceChildren(...shapes)
}

/** Position of the time `ms` from now, in per cent. */
const x = (ms: number) => 50 + (Math.max(-spanMs, Math.min(spanMs, ms)) / spanMs) * 50
const percent = (value: number) => `${value.toFixed(2)}%`

function bar(fromMs: number, toMs: number, className: string): SVGElement {
  const [from, to] = [x(fromMs), x(toMs)]
  return shape('rect', {
    ...{ class: className, x: percent(from), width: percent(Math.max(0.6, to - from)) },
    ...{ y: '2', height: '16', rx: '4' },
  })
}

function refusal(atMs: number, passesMs: number): SVGElement[] {
  const [at, passes] = [x(atMs), x(passesMs)]
  const marks = [
    shape('line', { class: 'wait', x1: percent(at), x2: percent(passes), y1: '50%', y2: '50%' }),
  ]
  if (passesMs < spanMs) {
    marks.push(shape('circle', { class: 'passes', cx: percent(passes), cy: '50%', r: '4.5' }))
  }
  if (atMs > -spanMs) {
    const cross = shape('svg', { class: 'cross', x: percent(at), y: '50%', overflow: 'visible' })
    cross.append(shape('path', { d: 'M-4-4 4 4M4-4-4 4' }))
    marks.push(cross)
  }
  return marks
}

function shape(tag: string, attributes: Readonly<Record<string, string>>): SVGElement {
  const element = document.createElementNS(svg, tag)
  setAttributes(element, attributes)
  return element as SVGElement
}

function buildObserved(lane: Lane): HTMLElement {
  return make('li', 'seen', [
    make('b', '', lane.rule),
    make('span', 'quota', quotaOf(lane)),
    make('span', 'amount'),
  ])
}

function buildDecision({ atMs, asked, refusal }: Decided): HTMLElement {
  const verdict = refusal
    ? text('refused', {
        ...{ rule: refusal.rule, window: refusal.window, wait: count(refusal.retryAfterMs) },
      })
    : text('admitted')
  return make('li', refusal ? 'no' : 'yes', [
    make('time', '', clock(atMs)),
    make('span', 'what', text(asked)),
    make('span', 'verdict', verdict),
  ])
}
