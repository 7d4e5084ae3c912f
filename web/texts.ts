/** Texts of the field. Each text of a refusal gives the next step. */
import type { TextName } from './bundled-texts.ts'
import { type Channel, kindOf } from './channels.ts'

export type { TextName }
export type Values = Readonly<Record<string, string | number>>
export type Texts = Readonly<Record<TextName, string>>
/** Returns the text in the language of the page, with its values filled in. */
export type TextOf = (name: TextName, values?: Values) => string

/** The name of a text that each kind of address has, e.g. `smsLabel`. */
export const ofKind = (channel: Channel, name: string) => `${kindOf(channel)}${name}` as TextName

export const fill = (text: string, values: Values = {}) =>
  text.replace(/\{(\w+)\}/g, (_, name) => `${values[name] ?? ''}`)
