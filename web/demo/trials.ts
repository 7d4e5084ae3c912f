/**
 * Trials that a visitor can start. Each trial uses a new visitor without earlier limits, acts on the real processes,
 * and writes the results to `#story`.
 */
import type { PosternClient, Problem } from '../client.ts'
import type { DemoState, Notice } from './demo-state.ts'
import { codeIn } from './devices.ts'
import { byId, make } from './elements.ts'
import type { Hand } from './hand.ts'
import { type StateFollower, tellServer } from './server.ts'
import { duration, type TextName, text } from './texts.ts'

export type TrialName = 'twice' | 'guess' | 'provider' | 'call' | 'worker'

const visitors = 6
/** Pause between two steps, so that a visitor can follow them. */
const breathMs = 700

export function createTrials(deps: { hand: Hand; client: PosternClient; server: StateFollower }) {
  const { hand, client, server } = deps
  const scene = 'signup'
  const channel = 'sms'

  const trials: Record<TrialName, () => Promise<void>> = {
    async twice() {
      const to = newNumber()
      if (!(await askByForm(to))) return
      tell('askedAgain')
      await breathe()
      const again = await client.send({ channel, to, scene })
      if (!again.ok && 'retryAfterMs' in again.problem && 'rule' in again.problem) {
        const { rule, retryAfterMs } = again.problem
        tell('refusedStory', { rule, time: duration(retryAfterMs) })
      } else if (!again.ok) unexpected(again.problem)
      await server.ask()
    },

    async guess() {
      const to = newNumber()
      if (!(await askByForm(to))) return
      const right = await codeFor(to)
      if (!right) return
      for (const code of wrongCodes(right)) {
        await breathe()
        const answer = await hand.type(code)
        if (answer.type !== 'refused') return
        const { problem } = answer.detail
        if (problem.code !== 'code_mismatch') return unexpected(problem)
        if (problem.triesLeft > 0) tell('guessed', { code, left: problem.triesLeft })
        else {
          tell('codeDead', { code })
          break
        }
      }
      await breathe()
      tell('rightCode', { code: right })
      const last = await client.check({ channel, to, scene, code: right })
      if (last.ok) return
      const { problem } = last
      if (problem.code === 'locked') {
        tell('rightRefused', { time: duration(problem.retryAfterMs) })
      } else if (problem.code === 'code_gone') tell('rightGone')
      else unexpected(problem)
      await server.ask()
    },

    async provider() {
      const before = await server.until(({ provider }) => provider ?? undefined)
      if (!before) return
      const { name, reserve, isOff } = before
      await tellServer('provider', { isOff: !isOff })
      if (isOff) {
        tell('switchedOn', { name })
        await server.ask()
        return
      }
      tell('switchedOff', { name })
      for (let n = 1; n <= visitors; n++) {
        const isByMail = n % 2 === 0
        const sent = await client.send(
          isByMail
            ? { channel: 'email', to: `visitor-${newDigits()}@example.com`, scene }
            : { channel, to: newNumber(), scene },
        )
        if (!sent.ok) return unexpected(sent.problem)
        const notice = await server.until((state) => finished(state, sent.answer.id))
        if (!notice) return
        const time = duration(tookMs(notice))
        const failed = notice.attempts.some(({ provider }) => provider === name)
        const story = failed ? 'wentRound' : notice.provider === reserve ? 'wentStraight' : 'wentOn'
        tell(story, { n, name, other: notice.provider ?? '', time })
      }
    },

    async call() {
      const to = `+861380014${newDigits()}`
      if (!(await askByForm(to, 'default'))) return
      const call = await server.until(({ messages }) => messages.find((one) => one.to === to))
      if (call) tell('callBegan')
    },

    async worker() {
      await tellServer('kill-worker')
      tell('killed')
      const told = await hand.ask(newNumber())
      if (told.type === 'refused') return unexpected(told.detail.problem)
      if (told.type !== 'sent') return
      tell('keptRow')
      const { id } = told.detail
      await server.until(({ worker }) => worker.kind === 'starting' || undefined)
      tell('restarted')
      const notice = await server.until((state) => finished(state, id))
      if (notice) tell('deliveredLate', { time: duration(tookMs(notice)) })
    },
  }

  async function askByForm(to: string, workflow?: string): Promise<boolean> {
    tell('askedFor', { to })
    const told = await hand.ask(to, workflow)
    if (told.type === 'refused') unexpected(told.detail.problem)
    else tell('firstSent')
    await server.ask()
    return told.type === 'sent'
  }

  const codeFor = (to: string) =>
    server.until(({ messages }) => {
      const message = messages.find((one) => one.to === to)
      return message && codeIn(message)
    })

  let isPlaying = false
  return async function play(name: TrialName): Promise<void> {
    if (isPlaying) return
    isPlaying = true
    const pressed = document.activeElement as HTMLElement | null
    byId('story').replaceChildren()
    setBusy(true)
    try {
      await trials[name]()
    } catch {
      tell('noAnswer')
    } finally {
      setBusy(false)
      isPlaying = false
      // The field has moved the focus to its input.
      pressed?.focus({ preventScroll: true })
    }
  }
}

function setBusy(isBusy: boolean): void {
  // `disabled` would remove the focus from the pressed button.
  for (const button of document.querySelectorAll('[data-trial]')) {
    button.setAttribute('aria-disabled', String(isBusy))
  }
}

function tell(name: TextName, values?: Readonly<Record<string, string | number>>): void {
  const story = byId('story')
  story.append(make('li', '', text(name, values)))
  story.scrollTop = story.scrollHeight
}

const unexpected = ({ code }: Problem) => tell('unexpected', { code })

const finished = ({ notices }: DemoState, id: string) =>
  notices.find((notice) => notice.id === id && notice.sentAt)

const tookMs = ({ createdAt, sentAt }: Notice) =>
  Math.max(0, Date.parse(sentAt ?? createdAt) - Date.parse(createdAt))

const breathe = () => new Promise((resolve) => setTimeout(resolve, breathMs))

let drawn = Math.floor(Math.random() * 10_000)
/** Digits that are unique in this page, and most likely also across pages. */
const newDigits = () => String(drawn++ % 10_000).padStart(4, '0')
const newNumber = () => `+861380013${newDigits()}`

/** Three codes other than the right one. */
const wrongCodes = (right: string) =>
  ['1234', '0000', '1111', '2580']
    .map((code) => code.padEnd(right.length, '0').slice(0, right.length))
    .filter((code) => code !== right)
    .slice(0, 3)
