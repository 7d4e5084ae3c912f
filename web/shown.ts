/** What of a field's state is shown, in words. */
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
  /** Said in place of the input for the address, where the page has the address. */
  given: string | undefined
  label: string
  /** Undefined: none is known. */
  country: ShownCountry | undefined
  send: string
  codeLabel: string
  codeLength: number
  code: string
  again: string
  /** Undefined: no such button. */
  other: string | undefined
  change: string | undefined
  message: string
  /** A second sentence: what to do now. It comes and goes by itself. */
  note: string
  tone: Tone
  /** Which input the message is about. */
  wrong: 'address' | 'code' | ''
  canSend: boolean
  canType: boolean
  canLeave: boolean
  isBusy: boolean
  isPassed: boolean
}

export interface ShownCountry {
  /** Before the number. */
  prefix: string
  label: string
  /** ISO 3166; empty where the number is of none of `options`. */
  value: string
  /** None: there is nothing to pick. */
  options: { value: string; name: string }[]
}

export interface Around {
  settings: Settings
  given: Given | undefined
  /** Where a code goes. */
  to: string
  /** As it stands in the input. */
  written: string
  text: TextOf
}

export function shownOf(state: State, around: Around): Shown {
  const { channel, step, busyWith, isPassed, sent, code, message, wrong } = state
  const { settings, given, to, text } = around
  const waitMs = waitMsOf(state, to)
  const lockMs = lockMsOf(state, to)
  const time = timeLeft(waitMs)
  const other = settings.channels.find((each) => each !== channel)
  // A lock that was told before a reload, or before another number was typed.
  const locked = { name: 'locked', tone: 'wrong' } as const
  const told: State['message'] = message ?? (lockMs > 0 ? locked : undefined)
  const at = clockTime(lockMs, settings.language)
  const said = told ? text(told.name, { at, ...told.values }) : ''
  const note = noteFor(state, told?.name, waitMs)
  return {
    step,
    channel,
    given:
      given &&
      (given.input ? text(ofChannel(channel, 'Given')) : text('givenTo', { to: given.to })),
    label: text(ofChannel(channel, 'Label')),
    country: channel === 'sms' && !given ? shownCountry(state, around) : undefined,
    send: text(waitMs > 0 ? 'sendIn' : 'send', { time }),
    codeLabel: text('codeLabel', { to: sent?.shownTo ?? '' }),
    codeLength: sent?.codeLength ?? 4,
    code,
    again: text(waitMs > 0 ? 'againIn' : 'again', { time }),
    other: other && text(other === 'sms' ? 'useSms' : 'useEmail'),
    change: step === 'code' && !given ? text(ofChannel(channel, 'Change')) : undefined,
    message: said,
    note: note ? `${said.endsWith('。') ? '' : ' '}${text(note)}` : '',
    tone: told?.tone ?? 'plain',
    wrong,
    canSend: !busyWith && waitMs === 0,
    canType: canType(state, to),
    canLeave: canLeave(state),
    isBusy: busyWith !== undefined,
    isPassed,
  }
}

/** What to do after what was said. */
function noteFor(state: State, said: TextName | undefined, waitMs: number): TextName | undefined {
  if (state.step !== 'code' || state.busyWith || state.isPassed || !said) return undefined
  if (isAlive(state)) return waitMs === 0 && tellsOfCode.includes(said) ? 'canResend' : undefined
  if (!endsCode.includes(said)) return undefined
  return waitMs > 0 ? 'askNewLater' : 'askNew'
}
const tellsOfCode: TextName[] = ['sent', 'sentEmail', 'sentAgain', 'sentAgainEmail']
const endsCode: TextName[] = ['wrongLast', 'gone', 'expired']

function shownCountry(state: State, { settings, written, text }: Around): ShownCountry | undefined {
  const { countries, language } = settings
  const picked = state.country ?? settings.country
  if (!picked) return undefined
  // A number that says its country has the calling code already.
  const isOwn = isInternational(written)
  const value = isOwn ? (countryOf(written, [picked, ...countries]) ?? '') : picked
  return {
    prefix: isOwn ? value : `+${callingCodeOf(picked)}`,
    label: text('country'),
    value,
    options: optionsOf(countries, language),
  }
}

const optionsMade = new Map<string, ShownCountry['options']>()

/** In the order of the language. Made once: a field is drawn four times a second. */
function optionsOf(countries: readonly string[], language: string): ShownCountry['options'] {
  const name = `${language} ${countries}`
  let options = optionsMade.get(name)
  if (!options) {
    const names = namesIn(language)
    const { compare } = new Intl.Collator(names.resolvedOptions().locale)
    options = countries
      .map((value) => ({ value, name: `${names.of(value)} (+${callingCodeOf(value)})` }))
      .sort((a, b) => compare(a.name, b.name))
    optionsMade.set(name, options)
  }
  return options
}

function namesIn(language: string): Intl.DisplayNames {
  try {
    return new Intl.DisplayNames(language, { type: 'region' })
  } catch {
    // `lang` is what a page wrote.
    return new Intl.DisplayNames('en', { type: 'region' })
  }
}
