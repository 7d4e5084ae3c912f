/** Turns the state of a field into texts. */
import { callingCodeOf } from './calling-codes.ts'
import type { Channel } from './client.ts'
import { countryOf, isInternational } from './phone-number.ts'
import { clockTime, timeLeft } from './readings.ts'
import type { Given, Settings } from './settings.ts'
import { canLeave, canType, isAlive, lockMsOf, type State, type Tone, waitMsOf } from './state.ts'
import { ofChannel, type TextName, type TextOf } from './texts.ts'

export interface Shown {
  step: 'address' | 'code'
  channel: Channel
  /** Text in place of the input when the page gives the address. */
  given: string | undefined
  label: string
  /** Undefined if the country is not known. */
  country: ShownCountry | undefined
  send: string
  codeLabel: string
  codeLength: number
  code: string
  /** The text of the button for another code; undefined without this button. */
  again: string | undefined
  other: string | undefined
  change: string | undefined
  message: string
  /** A second sentence with the next step. It changes with time. */
  note: string
  tone: Tone
  /** The input with the mistake. */
  wrong: 'address' | 'code' | ''
  canSend: boolean
  mayType: boolean
  canLeave: boolean
  isBusy: boolean
  isPassed: boolean
  /** Message of a form that can't be sent yet; empty if it can be. */
  missing: string
}

export interface ShownCountry {
  /** Shown before the number. */
  prefix: string
  label: string
  /** ISO 3166; empty if the number belongs to none of `options`. */
  value: string
  /** Empty if there is no choice. */
  options: { value: string; name: string }[]
}

export interface Around {
  settings: Settings
  given: Given | undefined
  /** The address that gets the code. */
  to: string
  /** The text in the input. */
  written: string
  text: TextOf
}

export function shownOf(state: State, around: Around): Shown {
  const { channel, busyWith, isPassed, sent, message } = state
  const { settings, given, to, text } = around
  const step = sent ? 'code' : 'address'
  const waitMs = waitMsOf(state, to)
  const lockMs = lockMsOf(state, to)
  const time = timeLeft(waitMs)
  const other = settings.channels.find((each) => each !== channel)
  // A lock that the service reported before a reload, or before the number changed.
  const locked = { name: 'locked', tone: 'wrong' } as const
  const told: State['message'] = message ?? (lockMs > 0 ? locked : undefined)
  const at = clockTime(lockMs, settings.language)
  const sentence = told ? text(told.name, { at, ...told.values }) : ''
  const note = noteFor(state, told?.name, waitMs)
  return {
    ...state,
    step,
    given:
      given &&
      (given.input
        ? text(ofChannel(channel, 'Given'))
        : text('givenTo', { to: isolated(given.to) })),
    label: text(ofChannel(channel, 'Label')),
    country: channel === 'sms' && !given ? shownCountry(state, around) : undefined,
    send: text(waitMs > 0 ? 'sendIn' : 'send', { time }),
    codeLabel: text('codeLabel', { to: isolated(sent?.shownTo ?? '') }),
    codeLength: sent?.codeLength ?? 4,
    again: sent && text(waitMs > 0 ? 'againIn' : 'again', { time }),
    other: other && text(other === 'sms' ? 'useSms' : 'useEmail'),
    change: sent && (!given || given.input) && text(ofChannel(channel, 'Change')),
    message: sentence,
    // The space depends only on the note. A screen reader repeats a text that changes.
    note: note ? text(note).replace(/^.*[^。]$/, ' $&') : '',
    tone: told?.tone ?? 'plain',
    canSend: !busyWith && waitMs === 0,
    mayType: canType(state),
    canLeave: canLeave(state),
    isBusy: busyWith !== undefined,
    missing: settings.isRequired && !isPassed ? text('required') : '',
  }
}

/** A text with a separate direction, as `dir="auto"` gives an element. */
const isolated = (text: string) => `\u2068${text}\u2069`

/** The next step after a message. */
function noteFor(state: State, name: TextName | undefined, waitMs: number): TextName | undefined {
  if (!state.sent || state.busyWith || state.isPassed) return undefined
  if (isAlive(state))
    return waitMs > 0 ? undefined : tellsOfCode.includes(name) ? 'canResend' : 'ready'
  if (!endsCode.includes(name)) return undefined
  return waitMs > 0 ? 'askNewLater' : 'askNew'
}
const tellsOfCode: (TextName | undefined)[] = ['sent', 'sentEmail', 'sentAgain', 'sentAgainEmail']
const endsCode: (TextName | undefined)[] = ['wrongLast', 'gone', 'expired']

function shownCountry(state: State, { settings, written, text }: Around): ShownCountry | undefined {
  const { countries, language } = settings
  const picked = state.country ?? settings.country
  if (!picked) return undefined
  // An international number contains its calling code already.
  const isOwn = isInternational(written, picked)
  const value = isOwn ? (countryOf(written, [picked, ...countries]) ?? '') : picked
  return {
    prefix: isOwn ? value : `+${callingCodeOf(picked)}`,
    label: text('country'),
    value,
    options: optionsOf(countries, language),
  }
}

const optionsMade = new Map<string, ShownCountry['options']>()

/** The countries, sorted as in the language. Made once, because a field is drawn four times a second. */
function optionsOf(countries: readonly string[], language: string): ShownCountry['options'] {
  const name = `${language} ${countries}`
  let options = optionsMade.get(name)
  if (!options) {
    const names = new Intl.DisplayNames(language, { type: 'region' })
    const { compare } = new Intl.Collator(language)
    options = countries
      .map((value) => ({
        value,
        name: `${names.of(value)} (${isolated(`+${callingCodeOf(value)}`)})`,
      }))
      .sort((a, b) => compare(a.name, b.name))
    optionsMade.set(name, options)
  }
  return options
}
