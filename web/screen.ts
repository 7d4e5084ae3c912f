/** Draws the state of a field after every change, and four times a second during a countdown. */
import { kindOf } from './channels.ts'
import { draw } from './draw.ts'
import { toE164 } from './phone-number.ts'
import type { Given, Settings } from './settings.ts'
import { addressStep, changedByTime, emptyState, isAlive, type State, waitMsOf } from './state.ts'
import type { TextName, TextOf, Values } from './texts.ts'
import type { View } from './view.ts'

const tickMs = 250

export type Screen = ReturnType<typeof createScreen>

/** `onTick` runs while a code can be typed. */
export function createScreen(view: View, settings: Settings, text: TextOf, onTick: () => void) {
  const state = emptyState('sms')
  let timer: ReturnType<typeof setInterval> | undefined

  return {
    state,
    countryNow,
    givenNow,
    addressOf,
    change,
    say,
    complain,
    redraw,
    follow,
    stop,
  }

  /** The country of a number without calling code; empty if it is not known. A sent code keeps the country of its number. */
  function countryNow(): string {
    return state.sent?.country ?? state.country ?? settings.country
  }

  /** The address that gets the code. A number is in E.164 if its country is known. */
  function addressOf(): string {
    return state.sent?.to ?? writtenNow()
  }

  function writtenNow(): string {
    const written = givenNow()?.to ?? view.address.value.trim()
    return kindOf(state.channel) === 'sms' ? toE164(written, countryNow()) : written
  }

  /** The address of the page with the channel that it is for, unless the person chose a channel to another one. */
  function givenNow(): Given | undefined {
    const { given, channels } = settings
    const used = [state.channel, ...(state.isSwitched ? [] : channels)]
    const channel = used.find((each) => kindOf(each) === given?.channel)
    return given && channel && { ...given, channel }
  }

  function change(changes: Partial<State>): void {
    Object.assign(state, changes)
    redraw()
  }

  /** Shows a message about the request under way. */
  function say(name: TextName): void {
    change({ wrong: '', message: { name, tone: 'busy' } })
  }

  /** Shows an error. No request is under way any more. */
  function complain(
    name: TextName,
    wrong: State['wrong'] = '',
    values?: Values,
    detail?: string,
  ): void {
    view.challenge.replaceChildren()
    const message = { name, values, tone: 'wrong', detail } as const
    change({ busyWith: undefined, onAnswer: undefined, wrong, message })
    if (wrong === 'address') view.focus(givenNow()?.input ?? view.entry())
    view.keepInSight()
  }

  /**
   * Draws the address step if the page gives another address than before, and removes the pass of that address. An emptied
   * input keeps the code and the pass.
   */
  function follow(): void {
    const { busyWith, channel, sent } = state
    const given = givenNow()
    const isOther =
      given && (sent ? given.to && writtenNow() !== sent.to : given.channel !== channel)
    if (isOther && !busyWith) {
      view.carry()
      Object.assign(state, addressStep(state, given.channel))
    }
    redraw()
  }

  function redraw(): void {
    const to = addressOf()
    Object.assign(state, changedByTime(state, to))
    draw(view, state, { settings, given: givenNow(), to, text })
    if (waitMsOf(state, to) > 0 || isAlive(state)) timer ??= setInterval(tick, tickMs)
    else stop()
  }

  /** A script of the page may change its input after the code passed: that keeps the pass. */
  function tick(): void {
    const { channel, isPassed, passEndsAtMs } = state
    if (!isPassed) {
      follow()
      onTick()
    }
    // A timer for the whole life of the pass would stand still while a device sleeps.
    else if (passEndsAtMs <= Date.now()) {
      view.carry()
      Object.assign(state, addressStep(state, channel))
      follow()
      change({ message: { name: 'passExpired', tone: 'wrong' } })
    }
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }
}
