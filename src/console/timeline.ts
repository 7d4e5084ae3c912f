/** The events of a story, the latest first: requests, refusals, attempts, receipts, checks, resets. */

import { type Html, html } from '../base/html.ts'
import { traceIdOf } from '../base/traces.ts'
import { fill, shortTime } from '../base/words.ts'
import type { Attempt, AttemptOutcome } from '../notice/states.ts'
import type { RefusalEntry } from '../support/decision-log.ts'
import type { Story } from '../support/support.ts'
import type { View } from './page.ts'
import { errorText, icon, type Shape, type Tone, time, wordFor } from './parts.ts'

interface Entry {
  at: Date
  tone: Tone
  shape: Shape
  title: string
  /** Details in small print. */
  more?: (Html | string | undefined)[]
}

type Notice = Story['notices'][number]

const toneOfOutcome: Readonly<Record<AttemptOutcome, Tone>> = {
  accepted: 'good',
  rejected: 'bad',
  invalid_recipient: 'bad',
  postponed: 'wait',
  throttled: 'wait',
  unavailable: 'bad',
  unknown: 'wait',
  not_taken: 'wait',
}

export function timeline(
  view: View,
  story: Pick<Story, 'notices' | 'refusals' | 'checks' | 'operations'>,
  /** The id of the notice to mark. */
  marked?: string,
): Html {
  const { notices, refusals, checks, operations } = story
  const entries = [
    ...notices.flatMap((notice) => ofNotice(view, notice, notice.id === marked)),
    ...refusals.map((refusal) => ofRefusal(view, refusal)),
    // A refused check is already shown as a refusal.
    ...checks.filter(({ result }) => result !== 'refused').map((check) => ofCheck(view, check)),
    ...operations.map((operation) => ofOperation(view, operation)),
  ]
  if (entries.length === 0) return html`<p class="quiet">${view.words.story.empty}</p>`
  entries.sort((a, b) => b.at.getTime() - a.at.getTime())
  return html`<ol class="timeline">${entries.map(entryOf)}</ol>`
}

const entryOf = ({ at, tone, shape, title, more = [] }: Entry): Html => html`<li class="${tone}">
<span class="mark">${icon(shape)}</span>
<div><p class="title">${title}</p>${more.some(Boolean) && html`<p class="more">${more.map((part) => part && html`<span>${part}</span> `)}</p>`}</div>
${time(at)}</li>`

function ofNotice(view: View, notice: Notice, isMarked: boolean): Entry[] {
  const { words, language } = view
  const { events } = words
  const { id, kind, scene, template, state, finishedAt, error, createdAt, attempts } = notice
  const name = html`<a class="id" href="/notices/${id}"${isMarked && html` aria-current="true"`}>${id}</a>`
  const traceId = traceIdOf(notice.traceParent)
  const trace = traceId && html`${events.trace} <span class="id">${traceId}</span>`
  const entries: Entry[] = [
    {
      at: createdAt,
      tone: 'plain',
      shape: 'ask',
      title: wordFor(events.asked, kind),
      more: [scene ? fill(events.scene, language, { scene }) : undefined, template, name, trace],
    },
    ...(attempts as unknown as Attempt[]).map((attempt) => ofAttempt(view, attempt)),
  ]
  const isOver = state === 'delivered' || state === 'failed' || state === 'expired'
  if (isOver && finishedAt) {
    entries.push({
      at: finishedAt,
      tone: state === 'delivered' ? 'good' : 'bad',
      shape: state === 'delivered' ? 'check' : state === 'failed' ? 'cross' : 'clock',
      title: events[state],
      more: [errorText(view, error), name],
    })
  }
  // If two steps have the same millisecond, the later one stands above.
  return entries.reverse()
}

function ofAttempt({ words: { events }, language }: View, attempt: Attempt): Entry {
  const { provider, at, outcome, durationMs, detail, count, latestAt } = attempt
  return {
    at: new Date(at),
    tone: toneOfOutcome[outcome] ?? 'plain',
    shape: 'send',
    title: `${provider ?? events.lostWorker}: ${wordFor(events.outcomes, outcome)}`,
    more: [
      shortTime({ count: durationMs, unit: 'ms' }, language),
      detail,
      latestAt &&
        html`${fill(events.times, language, { n: count ?? 1 })} ${time(new Date(latestAt))}`,
    ],
  }
}

function ofRefusal({ words: { events }, language }: View, refusal: RefusalEntry): Entry {
  const { at, policy, rule, window, retryAfterMs, challenge, lockBegan, isOfCheck } = refusal
  const by = (text: string) => fill(text, language, { rule: `${policy}.${rule}` })
  if (challenge) {
    return { at, tone: 'wait', shape: 'human', title: by(events.challenged) }
  }
  const until = html`${events.until} ${time(new Date(at.getTime() + retryAfterMs))}`
  return {
    at,
    tone: 'bad',
    shape: isOfCheck ? 'lock' : 'stop',
    title: by(lockBegan ? events.locked : events.refused),
    more: [window, until],
  }
}

const lookOfCheck = {
  passed: ['good', 'check'],
  mismatch: ['bad', 'cross'],
  gone: ['wait', 'clock'],
  refused: ['bad', 'lock'],
} as const

function ofCheck({ words }: View, { at, result }: Story['checks'][number]): Entry {
  const [tone, shape] = lookOfCheck[result]
  return { at, tone, shape, title: words.events.checks[result] }
}

function ofOperation({ words }: View, operation: Story['operations'][number]): Entry {
  const { at, what, reason, keyName } = operation
  const done = what.map((one) => wordFor(words.events.operations, one)).join(', ')
  return {
    at,
    tone: 'plain',
    shape: what.includes('reveal') ? 'eye' : 'hand',
    title: `${keyName ?? words.operations.unknownKey}: ${done}`,
    more: [reason],
  }
}
