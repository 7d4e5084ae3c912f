/** Texts of the field, in the language of the page. Each text of a refusal gives the next step. */
import { bundled, type TextName, texts } from './bundled-texts.ts'
import type { Channel } from './client.ts'

export type { TextName }
export type Values = Readonly<Record<string, string | number>>
export type Texts = Readonly<Record<TextName, string>>
/** Returns the text in the language of the page, with its values filled in. */
export type TextOf = (name: TextName, values?: Values) => string

/** The text in the language of a canonical tag, in English if the bundle does not have that language. */
export const textIn = (tag: string, name: TextName): string =>
  texts[name].split('|')[Math.max(0, bundled.indexOf(tag.replace(/-.*/, '')))] as string

/** The name of a text that each channel has, e.g. `smsLabel`. */
export const ofChannel = (channel: Channel, name: string) => `${channel}${name}` as TextName

export const fill = (text: string, values: Values = {}) =>
  text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ''))
