/**
 * What a field knows, on view: every change of `state` draws it anew, and while a wait holds the seconds are
 * counted down.
 */
import type { Given, Settings } from './settings.ts'
import { emptyState, type State, shownOf, waitMsOf } from './state.ts'
import type { TextName, TextOf, Values } from './texts.ts'
import type { View } from './view.ts'

const tickMs = 250
/** Messages that are over with the wait. */
const waitedFor = ['limited', 'limitedOther', 'locked']

export function createScreen(view: View, settings: Settings, text: TextOf) {
  const state = emptyState('sms')
  let timer: ReturnType<typeof setInterval> | undefined

  for (const type of ['focus', 'blur', 'keyup', 'pointerup']) {
    view.code.addEventListener(type, drawCaret)
  }

  return { state, addressOf, change, say, complain, draw, stop }

  /** Where a code goes. */
  function addressOf(): string {
    if (state.step === 'code' && state.sent) return state.sent.to
    return givenNow()?.to ?? view.address.value.trim()
  }

  function givenNow(): Given | undefined {
    const { given } = settings
    return given?.channel === state.channel ? given : undefined
  }

  function change(changes: Partial<State>): void {
    Object.assign(state, changes)
    draw()
  }

  /** What goes on. */
  function say(name: TextName): void {
    change({ isBusy: true, wrong: '', message: { name, tone: 'busy' } })
  }

  /** What went wrong; nothing goes on any more. */
  function complain(name: TextName, wrong: State['wrong'] = '', values?: Values): void {
    view.challenge.replaceChildren()
    change({ isBusy: false, onAnswer: undefined, wrong, message: { name, values, tone: 'wrong' } })
    if (wrong !== 'address') return
    const input = givenNow()?.input ?? view.address
    if (!input.hidden) input.focus()
  }

  function drawCaret(): void {
    const { code } = view
    // There is one place to type at: the first that is empty.
    if (code.selectionStart === code.selectionEnd) {
      code.setSelectionRange(code.value.length, code.value.length)
    }
    draw()
  }

  function draw(): void {
    const waitMs = waitMsOf(state, addressOf())
    view.render(shownOf(state, { settings, given: givenNow(), waitMs, text }))
    if (waitMs > 0) timer ??= setInterval(tick, tickMs)
    else stop()
  }

  function tick(): void {
    draw()
    const isOver = !timer && waitedFor.includes(state.message?.name ?? '')
    if (isOver) change({ message: { name: 'ready', tone: 'plain' } })
  }

  /** No more seconds are counted. */
  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }
}
