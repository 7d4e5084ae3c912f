/** What a field knows, and what of that is shown. */
import type { Channel } from './client.ts'
import { timeLeft } from './readings.ts'
import type { SentCode, Waits } from './saved-code.ts'
import type { Given, Settings } from './settings.ts'
import { ofChannel, type TextName, type TextOf, type Values } from './texts.ts'
import type { Shown } from './view.ts'

export interface State {
  channel: Channel
  step: 'address' | 'code'
  isBusy: boolean
  isPassed: boolean
  /** Its `expiresAtMs` is 0 once nothing that could be typed would pass. */
  sent?: SentCode | undefined
  waits: Waits
  message?: { name: TextName; values?: Values | undefined; tone: Shown['tone'] } | undefined
  /** What the message is about. */
  wrong: Shown['wrong']
  /** Whoever holds the answer to a vendor's challenge brings it to this. */
  onAnswer?: ((answer: string) => void) | undefined
}

export const emptyState = (channel: Channel): State => ({
  channel,
  step: 'address',
  isBusy: false,
  isPassed: false,
  waits: {},
  wrong: '',
  sent: undefined,
  message: undefined,
  onAnswer: undefined,
})

/** A wait holds for the address that it was told for. */
export function waitMsOf({ waits, channel }: State, to: string): number {
  const wait = waits[channel]
  return wait?.to === to ? Math.max(0, wait.untilMs - Date.now()) : 0
}

export function shownOf(
  state: State,
  around: {
    settings: Settings
    given: Given | undefined
    waitMs: number
    text: TextOf
  },
): Shown {
  const { channel, step, isBusy, isPassed, sent, message, wrong } = state
  const { settings, given, waitMs, text } = around
  const time = timeLeft(waitMs)
  const other = settings.channels.find((each) => each !== channel)
  return {
    step,
    channel,
    given:
      given &&
      (given.input ? text(ofChannel(channel, 'Given')) : text('givenTo', { to: given.to })),
    label: text(ofChannel(channel, 'Label')),
    send: text(waitMs > 0 ? 'sendIn' : 'send', { time }),
    codeLabel: text('codeLabel', { to: sent?.shownTo ?? '' }),
    codeLength: sent?.codeLength ?? 4,
    again: text(waitMs > 0 ? 'againIn' : 'again', { time }),
    other: other && text(other === 'sms' ? 'useSms' : 'useEmail'),
    change: step === 'code' && !given ? text(ofChannel(channel, 'Change')) : undefined,
    message: message ? text(message.name, message.values) : '',
    tone: message?.tone ?? 'plain',
    wrong,
    canSend: !isBusy && waitMs === 0,
    canType: !isBusy && sent?.expiresAtMs !== 0 && message?.name !== 'locked',
    isBusy,
    isPassed,
  }
}
