/** The state of a field, and how time changes it. */
import type { Channel } from './channels.ts'
import type { Held, SentCode } from './saved-code.ts'
import type { TextName, Values } from './texts.ts'

export type Tone = 'plain' | 'busy' | 'wrong' | 'right'

export interface Message {
  name: TextName
  values?: Values | undefined
  tone: Tone
  /** A second sentence. */
  note?: TextName | undefined
  /** The service's sentence, or a code: shown if the text has not arrived. */
  detail?: string | undefined
}

export interface State {
  channel: Channel
  /** The person chose another channel than the page's address has. */
  isSwitched?: boolean | undefined
  /** The country chosen from the list (ISO 3166). Undefined: the country of the page. */
  country?: string | undefined
  busyWith: 'send' | 'check' | undefined
  isPassed: boolean
  /** Infinity if the pass does not contain its end. */
  passEndsAtMs: number
  /** Undefined at the address step. `expiresAtMs` is 0 when no code can pass any more. */
  sent?: SentCode | undefined
  /** The code that the person left at the code step. */
  left?: SentCode | undefined
  /** Typed digits. */
  code: string
  /** The code that a link filled in. */
  filled?: string | undefined
  /** End of the time in which the service refuses sends. */
  waits: Held
  /** End of the time in which the service compares no code. */
  locks: Held
  message?: Message | undefined
  /** The input with the mistake. */
  wrong: 'address' | 'code' | ''
  /** Receives the answer to a vendor's challenge. */
  onAnswer?: ((answer: string) => void) | undefined
}

export const emptyState = (channel: Channel): State => ({
  channel,
  isSwitched: false,
  country: undefined,
  busyWith: undefined,
  isPassed: false,
  passEndsAtMs: 0,
  code: '',
  filled: undefined,
  waits: {},
  locks: {},
  wrong: '',
  sent: undefined,
  left: undefined,
  message: undefined,
  onAnswer: undefined,
})

/** The address step of a channel. Keeps the waits, and what the person chose. */
export function addressStep(state: State, channel: Channel): State {
  const { isSwitched, country, waits, locks, isPassed, sent } = state
  const left = isPassed || state.channel !== channel ? undefined : (sent ?? state.left)
  return { ...emptyState(channel), isSwitched, country, waits, locks, left }
}

/** The code to which the person can go back: it went to this address, may still pass, and no other can be sent yet. */
export function leftCode(state: State, to: string): SentCode | undefined {
  const { sent, left } = state
  if (sent || left?.to !== to || left.expiresAtMs <= Date.now()) return undefined
  return waitMsOf(state, to) && !lockMsOf(state, to) ? left : undefined
}

/** Time until the service compares codes of this address again. */
export const lockMsOf = ({ locks, channel }: State, to: string) => msLeft(locks[channel], to)

/** Time until a new code would help: it passes only after a lock has ended. */
export const waitMsOf = (state: State, to: string) =>
  Math.max(msLeft(state.waits[state.channel], to), lockMsOf(state, to))

/** A smaller step of the clock is ignored. */
const clockStepMs = 1_000

/** The rest of a wait or lock. 0 if it belongs to another address, or if the clock was put back. */
function msLeft(held: Held[Channel], to: string): number {
  if (held?.to !== to) return 0
  const leftMs = held.untilMs - Date.now()
  return leftMs > held.forMs + clockStepMs ? 0 : Math.max(0, leftMs)
}

/** Whether a sent code may still pass. */
export const isAlive = (state: State): state is WithCode =>
  state.sent !== undefined && state.sent.expiresAtMs > 0
type WithCode = State & { sent: SentCode }

/** Whether the service would compare a typed code. */
export const canType = (state: State): state is WithCode =>
  isAlive(state) && !state.busyWith && !state.isPassed && lockMsOf(state, state.sent.to) === 0

/** Whether the code of a link waits for the press of a person. */
export const isFilled = (state: State) =>
  isAlive(state) && !state.isPassed && state.code !== '' && state.code === state.filled

/**
 * A person who left during a check could lose the pass, so that is not allowed. A vendor's challenge can be left,
 * because it may wait for ever.
 */
export const canLeave = ({ busyWith, onAnswer }: State) =>
  busyWith !== 'check' || onAnswer !== undefined

/** `isAgain`: the new code replaces an earlier one. */
export const sentMessage = (channel: Channel, n: number, isAgain = false): Message => ({
  name: `${channel}Sent${isAgain ? 'Again' : ''}`,
  values: { n },
  tone: 'plain',
})

/** Changes of the state by time alone. Undefined if there are none. */
export function changedByTime(state: State, to: string): Partial<State> | undefined {
  const { message, busyWith, isPassed } = state
  if (busyWith || isPassed) return undefined
  if (isAlive(state) && state.sent.expiresAtMs <= Date.now()) {
    const ended = { sent: { ...state.sent, expiresAtMs: 0 }, code: '', wrong: '' } as const
    return lockMsOf(state, to) > 0
      ? { ...ended, message: { name: 'locked', tone: 'wrong' } }
      : { ...ended, message: { name: 'expired', tone: 'plain' } }
  }
  // Messages that disappear when the lock ends, and when the wait ends.
  const isLocked = /locked$/i.test(`${message?.name}`)
  if (isLocked && isAlive(state) && lockMsOf(state, to) === 0) {
    return { message: { name: 'canType', tone: 'plain' } }
  }
  if ((isLocked || /^limited/.test(`${message?.name}`)) && waitMsOf(state, to) === 0) {
    return { message: { name: 'ready', tone: 'plain' } }
  }
  return undefined
}
