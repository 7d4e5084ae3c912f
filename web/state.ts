/** What a field knows, and what time alone changes of it. */
import type { Channel } from './client.ts'
import type { Held, SentCode } from './saved-code.ts'
import type { TextName, Values } from './texts.ts'

export type Tone = 'plain' | 'busy' | 'wrong' | 'right'

export interface State {
  channel: Channel
  /** The one that was picked from the list (ISO 3166). Undefined: that of the page. */
  country?: string | undefined
  step: 'address' | 'code'
  /** What goes on. */
  busyWith: 'send' | 'check' | undefined
  isPassed: boolean
  /** Its `expiresAtMs` is 0 once nothing that could be typed would pass. */
  sent?: SentCode | undefined
  /** Digits that are typed. */
  code: string
  /** Until when the service would refuse a send. */
  waits: Held
  /** Until when the service compares no code. */
  locks: Held
  message?: { name: TextName; values?: Values | undefined; tone: Tone } | undefined
  /** Which input the message is about. */
  wrong: 'address' | 'code' | ''
  /** Takes the answer to a vendor's challenge. */
  onAnswer?: ((answer: string) => void) | undefined
}

export const emptyState = (channel: Channel): State => ({
  channel,
  country: undefined,
  step: 'address',
  busyWith: undefined,
  isPassed: false,
  code: '',
  waits: {},
  locks: {},
  wrong: '',
  sent: undefined,
  message: undefined,
  onAnswer: undefined,
})

/** How long no code of this address is compared. */
export const lockMsOf = ({ locks, channel }: State, to: string) => msLeft(locks[channel], to)

/** How long no code that is asked for would help: a new one passes no earlier than a lock ends. */
export const waitMsOf = (state: State, to: string) =>
  Math.max(msLeft(state.waits[state.channel], to), lockMsOf(state, to))

/** It holds for the address that it was told for. */
function msLeft(held: Held[Channel], to: string): number {
  return held?.to === to ? Math.max(0, held.untilMs - Date.now()) : 0
}

/** Whether a code is out that may still pass. */
export const isAlive = ({ sent }: State) => sent !== undefined && sent.expiresAtMs > 0

/** Whether a code that is typed would be compared. */
export const canType = (state: State, to: string) =>
  isAlive(state) && !state.busyWith && !state.isPassed && lockMsOf(state, to) === 0

/** A check that is left could pass, and its pass would be lost. A vendor's challenge may wait for ever. */
export const canLeave = ({ busyWith, onAnswer }: State) =>
  busyWith !== 'check' || onAnswer !== undefined

/** `isAgain`: a code before it no longer passes. */
export function sentMessage(channel: Channel, n: number, isAgain: boolean): State['message'] {
  const name = `sent${isAgain ? 'Again' : ''}${channel === 'sms' ? '' : 'Email'}` as const
  return { name, values: { n }, tone: 'plain' }
}

/** Messages that are over with the wait, and with the lock. */
const waited: (TextName | undefined)[] = ['limited', 'limitedOther']
const locked: (TextName | undefined)[] = ['locked', 'sentLocked']

/** What has changed by now though nothing happened. Undefined: nothing. */
export function changedByTime(state: State, to: string): Partial<State> | undefined {
  const { sent, message, busyWith, isPassed } = state
  if (busyWith || isPassed) return undefined
  if (sent && isAlive(state) && sent.expiresAtMs <= Date.now()) {
    const ended = { sent: { ...sent, expiresAtMs: 0 }, code: '', wrong: '' } as const
    return lockMsOf(state, to) > 0
      ? { ...ended, message: { name: 'locked', tone: 'wrong' } }
      : { ...ended, message: { name: 'expired', tone: 'plain' } }
  }
  const isLocked = locked.includes(message?.name)
  if (isLocked && isAlive(state) && lockMsOf(state, to) === 0) {
    return { message: { name: 'canType', tone: 'plain' } }
  }
  if ((isLocked || waited.includes(message?.name)) && waitMsOf(state, to) === 0) {
    return { message: { name: 'ready', tone: 'plain' } }
  }
  return undefined
}
