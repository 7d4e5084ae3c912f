/** Attributes of the element. They are read each time, because the page may change them. */
import { callingCodeOf } from './calling-codes.ts'
import { type Channel, isChannel } from './channels.ts'

export interface Given {
  channel: Channel
  to: string
  /** The input of the page; absent if the page gives the address as text. */
  input?: HTMLInputElement
}

export type Settings = ReturnType<typeof settingsOf>

export const settingNames = [
  'src',
  'key',
  'publishable-key',
  'scene',
  'channels',
  'workflow',
  'email',
  'country',
  'countries',
  'to',
  'for',
  'lang',
  'required',
]

export function settingsOf(element: HTMLElement) {
  const attribute = (name: string) => element.getAttribute(name) ?? ''
  const list = (text: string) => text.split(/[\s,]+/)
  return {
    get src() {
      return attribute('src')
    },
    get key() {
      // React and Vue use `key` themselves.
      return attribute('publishable-key') || attribute('key')
    },
    get scene() {
      return attribute('scene') || 'default'
    },
    /** A verification begins with a number. */
    get channels(): Channel[] {
      return list(this.workflow ? 'sms' : attribute('channels') || 'sms,email').filter(isChannel)
    },
    get workflow() {
      return attribute('workflow')
    },
    /** The address of the ways by mail. */
    get email() {
      return attribute('email')
    },
    /** Countries (ISO 3166) that a person can choose from. */
    get countries(): string[] {
      return [...new Set(list(attribute('countries').toUpperCase()))].filter(callingCodeOf)
    },
    /** The country of numbers without calling code, until the person chooses one; empty if not known. */
    get country(): string {
      const named = attribute('country').toUpperCase()
      const { countries } = this
      const isOffered = countries.length === 0 || countries.includes(named)
      return callingCodeOf(named) && isOffered ? named : (countries[0] ?? '')
    },
    /** A page may have written any text as `lang`. */
    get language(): string {
      const lang =
        element.closest('[lang]')?.getAttribute('lang') ||
        // An element in a shadow root finds nothing outside it.
        document.documentElement.lang ||
        navigator.language
      try {
        return Intl.getCanonicalLocales(lang.replaceAll('_', '-'))[0] ?? 'en'
      } catch {
        return 'en'
      }
    },
    get isRequired() {
      return element.hasAttribute('required')
    },
    /** Whether the form is sent as soon as a code passed. */
    get isAutosubmit() {
      return element.hasAttribute('autosubmit')
    },
    /** A text by its name, e.g. `text-sms-label`. */
    textOf: (name: string) =>
      element.getAttribute(
        `text-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
      ),

    /** The address that the page gives, in `to` or in the input that `for` names. */
    get given(): Given | undefined {
      const to = attribute('to')
      if (to) return { channel: channelOf(to), to }
      const id = attribute('for')
      const input = id && (element.getRootNode() as Document).getElementById?.(id)
      if (!(input instanceof HTMLInputElement)) return undefined
      const isEmail = input.type === 'email' || input.autocomplete === 'email'
      const channel = isEmail ? 'email' : input.type === 'tel' ? 'sms' : channelOf(input.value)
      return { channel, to: input.value.trim(), input }
    },
  }
}

const channelOf = (to: string): Channel => (/[@＠]/.test(to) ? 'email' : 'sms')
