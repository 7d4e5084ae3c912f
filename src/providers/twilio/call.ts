/** A call that reads a message aloud, as TwiML. */
import { html } from '../../base/html.ts'
import type { Message } from '../provider.ts'
import { secondsLeft } from '../seconds-left.ts'

/** So long the phone rings. A mailbox of the carrier would answer later. */
const ringSeconds = 30

/** The parameters of a call (https://www.twilio.com/docs/voice/api/call-resource, read on 2026-11-27). */
export function callParameters(message: Message): Record<string, string> {
  return {
    Twiml: twimlFor(message),
    Timeout: String(secondsLeft(message, ringSeconds) ?? ringSeconds),
  }
}

/** The person can write the digits down when the text is read again. */
function twimlFor({ text, locale }: Message): string {
  const spoken = html`<Say language="${languageOf(locale)}">${readable(text)}</Say>`
  const twiml = html`<Response><Pause length="1"/>${spoken}<Pause length="1"/>${spoken}</Response>`
  return `<?xml version="1.0" encoding="UTF-8"?>${twiml}`
}

/** Twilio's names of languages have a country: `de-DE` for `de`, `zh-TW` for `zh-Hant`. */
function languageOf(locale: string): string {
  const { language, region } = new Intl.Locale(locale).maximize()
  return `${language}-${region}`
}

/** XML can't have other control characters, not even escaped. */
const readable = (text: string) =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
  text.toWellFormed().replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, ' ')
