/** Draws the state of a field. */
import { callingCodeOf } from './calling-codes.ts'
import { channelAfter, kindOf } from './channels.ts'
import { set, setAttributes, setEnabled } from './elements.ts'
import { countryOf, isInternational } from './phone-number.ts'
import { clockTime, timeLeft } from './readings.ts'
import type { Given, Settings } from './settings.ts'
import {
  canLeave,
  canType,
  isAlive,
  isFilled,
  leftCode,
  lockMsOf,
  type State,
  waitMsOf,
} from './state.ts'
import { ofKind, type TextName, type TextOf } from './texts.ts'
import type { View } from './view.ts'

export interface Around {
  settings: Settings
  given: Given | undefined
  /** The address that gets the code. */
  to: string
  text: TextOf
}

export function draw(view: View, state: State, around: Around): void {
  const { channel, busyWith, isPassed, sent, wrong, message } = state
  const { settings, given, to, text } = around
  const waitMs = waitMsOf(state, to)
  const lockMs = lockMsOf(state, to)
  const time = timeLeft(waitMs)
  const isBack = leftCode(state, to) !== undefined
  const canSend = !busyWith && (!waitMs || isBack)
  const waitsForPress = isFilled(state)
  const mayType = canType(state)
  const mayLeave = canLeave(state)
  const next = isAlive(state) && state.sent.id && state.sent.way?.next
  // The next way of a verification can begin when a new code could be sent, and its own wait has ended.
  const isNext = next && !waitMs && !waitMsOf({ ...state, channel: next }, to)
  const other = isNext ? next : channelAfter(channel, settings.channels)
  // A lock that the service reported before a reload, or before the number changed.
  const locked = { name: 'locked', tone: 'wrong' } as const
  const shown: State['message'] = message ?? (lockMs ? locked : undefined)
  const at = clockTime(lockMs, settings.language)
  const note = shown?.note ?? noteFor(state, shown?.name, waitMs)

  setAttributes(view.root, {
    'data-step': waitsForPress ? 'filled' : sent ? 'code' : 'address',
    'data-tone': shown?.tone ?? 'plain',
    'aria-busy': `${!!busyWith}`,
  })
  view.root.classList.toggle('postern-passed', isPassed)
  drawAddress(view, state, around)
  const press = waitsForPress ? 'confirm' : isBack ? 'enterCode' : waitMs ? 'sendIn' : 'send'
  set(view.send, text(press, { time }))
  setEnabled(view.send, waitsForPress ? !busyWith : canSend)
  set(view.codeTitle, text('codeLabel', { to: isolated(sent?.shownTo ?? '') }))
  view.drawCode(state, mayType, wrong === 'code')
  set(view.message, shown ? text(shown.name, { at, ...shown.values }) || shown.detail || '' : '')
  // The space depends only on the note. A screen reader repeats a text that changes.
  set(view.note, note ? text(note, shown?.values).replace(/^.*[^。]$/, ' $&') : '')
  drawLink(view.again, sent && text(waitMs ? 'againIn' : 'again', { time }), canSend)
  const hasChange = sent && (!given || given.input)
  drawLink(view.change, hasChange && text(ofKind(channel, 'Change')), mayLeave)
  // A hidden link would lose the focus to the page.
  if (!other && view.other.matches(':focus')) (isAlive(state) ? view.code : view.again).focus()
  drawLink(view.other, other && text(`${other}Instead`), isNext ? canSend : mayLeave)
  view.setEntry(
    sent ? view.code : given ? view.send : view.address,
    settings.isRequired && !isPassed ? text('required') : '',
  )
}

function drawAddress(view: View, state: State, { settings, given, text }: Around): void {
  const { address, addressLabel, toLine, givenLabel, country, countryBox } = view
  const { channel } = state
  const type = kindOf(channel) === 'sms' ? 'tel' : 'email'
  setAttributes(address, {
    type,
    autocomplete: type,
    'aria-invalid': `${state.wrong === 'address'}`,
  })
  address.readOnly = !!state.busyWith
  set(addressLabel, text(ofKind(channel, 'Label')))
  const to = given && isolated(given.to)
  const isNamed = given?.input && channel === kindOf(channel) && !settings.workflow
  set(givenLabel, to ? text(isNamed ? ofKind(channel, 'Given') : 'givenTo', { to }) : '')
  addressLabel.hidden = toLine.hidden = !!given
  givenLabel.hidden = !given

  const { countries, language } = settings
  const picked = kindOf(channel) === 'sms' && !given ? (state.country ?? settings.country) : ''
  countryBox.hidden = !picked
  // An international number contains its calling code already.
  const isOwn = picked && isInternational(address.value, picked)
  const value = isOwn ? (countryOf(address.value, [picked, ...countries]) ?? '') : picked
  // The prefix describes the input, also where it is hidden.
  set(view.countryPrefix, isOwn || !picked ? value : `+${callingCodeOf(picked)}`)
  country.hidden = !countries[0]
  country.disabled = address.readOnly
  countryBox.classList.toggle('postern-picker', !country.hidden)
  setAttributes(country, { 'aria-label': text('country') })
  drawOptions(country, countries, language)
  if (country.value !== value) country.value = value
}

/** The countries, sorted as in the language. Drawn once, because a field is drawn four times a second. */
function drawOptions(list: HTMLSelectElement, countries: string[], language: string): void {
  const drawn = `${language} ${countries}`
  if (list.dataset.drawn === drawn) return
  list.dataset.drawn = drawn
  const names = new Intl.DisplayNames(language, { type: 'region' })
  const options = countries.map(
    (value) => new Option(`${names.of(value)} (${isolated(`+${callingCodeOf(value)}`)})`, value),
  )
  list.replaceChildren(...options.sort((a, b) => a.text.localeCompare(b.text, language)))
  list.selectedIndex = -1
}

/** A text with a separate direction, as `dir="auto"` gives an element. */
const isolated = (text: string) => `\u2068${text}\u2069`

function drawLink(link: HTMLElement, text: string | undefined, isEnabled: boolean): void {
  set(link, text ?? '')
  link.hidden = !text
  setEnabled(link, isEnabled)
}

/** The next step after a message. */
function noteFor(state: State, name: TextName | undefined, waitMs: number): TextName | undefined {
  if (!state.sent || state.busyWith || state.isPassed) return undefined
  if (isAlive(state)) return waitMs ? undefined : /Sent/.test(name ?? '') ? 'canResend' : 'ready'
  if (!/^(wrongLast|gone|expired)$/.test(name ?? '')) return undefined
  return waitMs ? 'askNewLater' : 'askNew'
}
