/** The view of a story: diagnoses, message timeline, current state, forms. */

import type { Channel } from '../base/channel.ts'
import { type Html, html } from '../base/html.ts'
import { fill } from '../base/words.ts'
import { resettable } from '../support/operations.ts'
import type { LimitState, Story } from '../support/support.ts'
import type { Diagnosis } from './diagnose.ts'
import type { LookedAt } from './looked-at.ts'
import type { View } from './page.ts'
import {
  badge,
  csrfField,
  duration,
  errorText,
  icon,
  masked,
  numberText,
  type Shape,
  searchForm,
  type Tone,
  time,
} from './parts.ts'
import { timeline } from './timeline.ts'

interface Shown {
  /** The last part of the page's address. */
  sealed: string
  lookedAt: LookedAt
  /** The channels of the recipient's messages, each with the last part of its story's address. */
  ways: readonly { channel: Channel; sealed: string }[]
  apps: readonly string[]
  app: string
  story: Story
  diagnoses: readonly Diagnosis[]
  isRevealed: boolean
  isDone: boolean
  marked: string | undefined
  /** The mistake in the form that was sent. */
  problem: string | undefined
}

const shapeOfTone: Readonly<Record<Tone, Shape>> = {
  good: 'check',
  bad: 'stop',
  wait: 'clock',
  plain: 'ask',
}

export function storyView(view: View, shown: Shown): Html {
  const { words } = view
  const { lookedAt, isRevealed, isDone, problem, story, marked } = shown
  const { channel, to } = lookedAt
  return html`${searchForm(view, { of: shown.sealed })}
<div class="who"><h1>${isRevealed ? to : masked(view, channel, to)}</h1>${wayLinks(view, shown)}${appLinks(view, shown)}</div>
${isRevealed && html`<p class="note">${icon('eye')}${words.story.revealed}</p>`}
${isDone && html`<p class="note good" role="status">${icon('check')}${words.story.done}</p>`}
${problem !== undefined && html`<p class="problem" role="alert">${icon('cross')}${problem}</p>`}
<ul class="findings">${shown.diagnoses.map((diagnosis) => diagnosisOf(view, diagnosis))}</ul>
<div class="columns">
<section><h2>${words.story.timeline}</h2>${timeline(view, story, marked)}<p class="hint">${words.story.latest}</p></section>
<div><section><h2>${words.story.now}</h2>${nowOf(view, story)}</section>
${forms(view, shown)}</div>
</div>`
}

function wayLinks({ words }: View, { ways, app, lookedAt }: Shown): Html {
  if (ways.length < 2) return html``
  const links = ways.map(({ channel, sealed }) => {
    const query = new URLSearchParams({ app })
    const isCurrent = channel === lookedAt.channel && html` aria-current="true"`
    return html`<li><a href="/story/${sealed}?${query.toString()}"${isCurrent}>${words.notices.channels[channel]}</a></li>`
  })
  return html`<nav aria-label="${words.delivery.channel}"><ul>${links}</ul></nav>`
}

function appLinks({ words }: View, { apps, app, sealed }: Shown): Html {
  if (apps.length < 2) return html`<p class="app">${words.story.app}: ${app}</p>`
  const links = apps.map((one) => {
    const query = new URLSearchParams({ app: one })
    const isCurrent = one === app && html` aria-current="true"`
    return html`<li><a href="/story/${sealed}?${query.toString()}"${isCurrent}>${one}</a></li>`
  })
  return html`<nav aria-label="${words.story.app}"><ul>${links}</ul></nav>`
}

function diagnosisOf(view: View, { tone, name, rule, ms, provider, error }: Diagnosis): Html {
  const { words, language } = view
  const values = {
    ...(rule === undefined ? {} : { rule }),
    ...(provider === undefined ? {} : { provider }),
    ...(ms === undefined ? {} : { time: duration(view, ms) }),
    why: errorText(view, error ?? null),
  }
  const title = fill(words.diagnoses[name].title, language, values)
  const advice = fill(words.diagnoses[name].advice, language, values)
  return html`<li class="${tone}"><span class="mark">${icon(shapeOfTone[tone])}</span><div><strong>${title}</strong><p>${advice}</p></div></li>`
}

function nowOf(view: View, { limits, codes, lockedForMs }: Story): Html {
  const { words, language } = view
  const { story } = words
  const asked = limits.filter(({ isOfCaptcha, lane }) => isOfCaptcha && lane !== 'known')
  const waitMs = Math.max(0, ...asked.map(({ nextInMs }) => nextInMs))
  const triesText = (n: number) =>
    n === 0 ? story.noTries : fill(story.triesLeft, language, { n })
  const live = codes.map(
    ({ scene, expiresAt, triesLeft, knownTriesLeft }) =>
      html`<li>${scene}: ${triesText(triesLeft)} (${story.lanes.known}: ${triesText(knownTriesLeft)}), ${story.until} ${time(expiresAt)}</li>`,
  )
  const reached = limits.filter(isReached)
  const free = limits.filter((limit) => !isReached(limit))
  const mayAsk =
    lockedForMs !== undefined
      ? badge(
          'bad',
          'lock',
          fill(story.mayNotCheck, language, { time: duration(view, lockedForMs) }),
        )
      : waitMs === 0
        ? badge('good', 'check', story.mayAsk)
        : badge('wait', 'clock', fill(story.mayAskIn, language, { time: duration(view, waitMs) }))
  return html`<p>${mayAsk}</p>
<h3>${story.codes}</h3>${live.length > 0 ? html`<ul>${live}</ul>` : html`<p class="quiet">${story.noCodes}</p>`}
<h3>${story.limits}</h3>${limitList(view, reached)}
<details><summary>${fill(story.free, language, { n: free.length })}</summary>${limitList(view, free)}</details>`
}

/** Whether this limit is reached. A rule with several windows has one state for each window. */
const isReached = ({ lockedForMs, nextInMs, used, limit }: LimitState) =>
  lockedForMs !== undefined || (nextInMs > 0 && used >= limit)

function limitList(view: View, limits: readonly LimitState[]): Html {
  const { words, language } = view
  const { story } = words
  const items = limits.map((state) => {
    const { policy, rule, used, limit, window, lockedForMs, nextInMs, lane } = state
    const wait =
      lockedForMs === undefined
        ? badge('wait', 'clock', fill(story.next, language, { time: duration(view, nextInMs) }))
        : badge('bad', 'lock', fill(story.locked, language, { time: duration(view, lockedForMs) }))
    return html`<li><b>${policy}.${rule}</b> ${numberText(view, used)} / ${numberText(view, limit)} <span class="quiet">${window}${lane && ` · ${story.lanes[lane]}`}</span> ${isReached(state) && wait}</li>`
  })
  return html`<ul class="limits">${items}</ul>`
}

function forms(view: View, { sealed, app, isRevealed }: Shown): Html {
  const { story } = view.words
  const { limitsChoice, lockChoice, codeChoice, laneChoice, suppressionChoice } = story
  const choices = {
    ...{ limits: limitsChoice, lock: lockChoice, code: codeChoice },
    ...{ suppression: suppressionChoice, lane: laneChoice },
  }
  const shared = html`${csrfField(view)}<input type="hidden" name="app" value="${app}">`
  const reason = (id: string, hint: string) => html`<label for="${id}">${story.reason}</label>
<input id="${id}" name="reason" required maxlength="500" autocomplete="off" aria-describedby="${id}-hint"><p class="hint" id="${id}-hint">${hint}</p>`
  return html`<section><h2>${story.reset}</h2><form method="post" action="/story/${sealed}/reset" data-keep>${shared}
${resettable.map((one) => html`<label class="choice"><input type="checkbox" name="${one}"> ${choices[one]}</label>`)}
${reason('reset-reason', story.resetHint)}<button>${story.resetButton}</button></form></section>
${
  !isRevealed &&
  html`<details class="card"><summary>${story.reveal}</summary>
<form method="post" action="/story/${sealed}/reveal" data-keep>${shared}
${reason('reveal-reason', story.revealHint)}<button>${story.revealButton}</button></form></details>`
}`
}
