/** Draws the state of a field after every change, and four times a second during a countdown. */
import { toE164 } from './phone-number.ts'
import type { Given, Settings } from './settings.ts'
import { shownOf } from './shown.ts'
import { changedByTime, emptyState, isAlive, type State, waitMsOf } from './state.ts'
import type { TextName, TextOf, Values } from './texts.ts'
import type { View } from './view.ts'

const tickMs = 250
const saying = { send: 'sending', check: 'checking' } as const

export type Screen = ReturnType<typeof createScreen>

export function createScreen(view: View, settings: Settings, text: TextOf) {
  const state = emptyState('sms')
  let timer: ReturnType<typeof setInterval> | undefined

  return { state, countryNow, addressOf, change, begin, say, complain, draw, stop }

  /** The country of a number without calling code; empty if it is not known. */
  function countryNow(): string {
    return state.country ?? settings.country
  }

  /** The address that gets the code. A number is in E.164 if its country is known. */
  function addressOf(): string {
    if (state.step === 'code' && state.sent) return state.sent.to
    const written = givenNow()?.to ?? view.address.value.trim()
    return state.channel === 'sms' ? toE164(written, countryNow()) : written
  }

  function givenNow(): Given | undefined {
    const { given } = settings
    return given?.channel === state.channel ? given : undefined
  }

  function change(changes: Partial<State>): void {
    Object.assign(state, changes)
    draw()
  }

  /** Sets the request that is now under way. */
  function begin(busyWith: 'send' | 'check'): void {
    change({ busyWith })
    say(saying[busyWith])
  }

  /** Shows a message about the request under way. */
  function say(name: TextName): void {
    change({ wrong: '', message: { name, tone: 'busy' } })
  }

  /** Shows an error. No request is under way any more. */
  function complain(name: TextName, wrong: State['wrong'] = '', values?: Values): void {
    view.challenge.replaceChildren()
    const message = { name, values, tone: 'wrong' } as const
    change({ busyWith: undefined, onAnswer: undefined, wrong, message })
    if (wrong === 'address') (givenNow()?.input ?? view.entry()).focus()
    view.keepInSight()
  }

  function draw(): void {
    const [to, given, written] = [addressOf(), givenNow(), view.address.value]
    Object.assign(state, changedByTime(state, to))
    view.render(shownOf(state, { settings, given, to, written, text }))
    const canChange = !state.isPassed && (waitMsOf(state, to) > 0 || isAlive(state))
    if (canChange) timer ??= setInterval(draw, tickMs)
    else stop()
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }
}
