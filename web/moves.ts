/** Steps of a person in a field: to its beginning, to the other channel, to another address. */
import type { Channel } from './client.ts'
import type { Parts } from './parts.ts'
import { canLeave, emptyState, sentMessage } from './state.ts'

export function createMoves({
  settings,
  view,
  screen,
  memory,
  work,
  checking,
}: Parts & { checking: { stop(): void } }) {
  const { state, change, draw } = screen

  return { begin, reset, stop, switchChannel, changeAddress }

  /** Begins with the state saved before a reload, or with an empty field. */
  function begin(): void {
    stop()
    const { channels, given } = settings
    const first = given && channels.includes(given.channel) ? given.channel : (channels[0] ?? 'sms')
    const saved = memory.recall()
    view.carry('', '', '')
    Object.assign(state, emptyState(first))
    if (saved && channels.includes(saved.channel)) {
      const { channel, sent } = saved
      const message = sent && sentMessage(channel, sent.codeLength, false)
      Object.assign(state, saved, { step: sent ? 'code' : 'address', message })
      if (sent && !view.address.value) view.address.value = sent.to
    }
    if (!settings.key || !settings.src || channels.length === 0) {
      console.error('<postern-code> needs the attributes key, src and channels')
      state.message = { name: 'setup', tone: 'wrong' }
    }
    draw()
  }

  function reset(): void {
    memory.forget()
    begin()
  }

  function stop(): void {
    work.stop()
    checking.stop()
    screen.stop()
  }

  function switchChannel(): void {
    const other = settings.channels.find((channel) => channel !== state.channel)
    if (!other || !canLeave(state)) return
    view.address.value = ''
    goToAddress(other)
  }

  function changeAddress(): void {
    if (!canLeave(state)) return
    goToAddress(state.channel)
    view.address.select()
  }

  function goToAddress(channel: Channel): void {
    work.stop()
    checking.stop()
    view.challenge.replaceChildren()
    const { country, waits, locks } = state
    change({ ...emptyState(channel), country, waits, locks })
    memory.save()
    view.entry().focus()
  }
}
