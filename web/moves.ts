/** Steps of a person in a field: to its beginning, to the other channel, to another address. */
import { type Channel, channelAfter, kindOf } from './channels.ts'
import type { CodeLink } from './code-link.ts'
import type { Parts } from './parts.ts'
import { addressStep, canLeave, emptyState, sentMessage } from './state.ts'

export function createMoves({
  settings,
  view,
  screen,
  memory,
  work,
  checking,
  link,
}: Parts & { checking: { stop(): void; readMessage(): void }; link: CodeLink }) {
  const { state, change, follow } = screen

  return { begin, reset, formReset, channelsChanged, stop, switchChannel, changeAddress }

  /** Begins with the state saved before a reload, or with an empty field. */
  function begin(): void {
    stop()
    const { channels } = settings
    const saved = memory.recall()
    view.carry()
    Object.assign(state, emptyState(channels[0] ?? 'sms'))
    if (saved && channels.includes(saved.channel)) {
      const { channel, sent } = saved
      const message = sent && sentMessage(sent.way?.channel ?? channel, sent.codeLength)
      Object.assign(state, saved, { message })
      if (sent && !view.address.value) view.address.value = sent.to
    }
    follow()
    if (state.sent && state.channel === 'sms') checking.readMessage()
    if (!settings.key || !settings.src || channels.length === 0) {
      console.error('<postern-code> needs key, src and channels')
      change({ message: { name: 'setup', tone: 'wrong' } })
    } else link.take()
  }

  function reset(): void {
    memory.forget()
    begin()
  }

  /** A check under way has perhaps used up the code, so its pass is kept. */
  function formReset(): void {
    if (canLeave(state)) reset()
  }

  /** The page has changed the channels that it offers. */
  function channelsChanged(): void {
    const isUsed = state.sent && settings.channels.includes(state.channel)
    if (isUsed || state.isPassed || !canLeave(state)) screen.redraw()
    else begin()
  }

  function stop(): void {
    work.stop()
    checking.stop()
    link.stop()
    screen.stop()
  }

  function switchChannel(): void {
    const other = channelAfter(state.channel, settings.channels)
    if (!other || !canLeave(state)) return
    // Another channel to the same number keeps it.
    if (kindOf(other) !== kindOf(state.channel)) view.address.value = ''
    state.isSwitched = settings.given?.channel !== kindOf(other)
    goToAddress(other)
    view.entry().focus()
  }

  function changeAddress(): void {
    if (!canLeave(state)) return
    const input = screen.givenNow()?.input ?? view.address
    goToAddress(state.channel)
    input.focus()
    input.select()
  }

  function goToAddress(channel: Channel): void {
    stop()
    view.challenge.replaceChildren()
    change(addressStep(state, channel))
    memory.save()
  }
}
