/** The texts of all SMS, for checks of their length and of the rules of carriers. */
import { channels } from '../base/channel.ts'
import { measureSms, notInGsm7, type SmsLength } from '../base/sms-length.ts'
import { channelFacts } from '../recipient/channels.ts'
import { type Links, longestLink } from './code-link.ts'
import { partsOf } from './edition-name.ts'
import type { Variants } from './template-variant.ts'
import { createValidityText, minutesOf } from './validity-text.ts'

/** `links`: of the policy file. */
export interface TypicalCode {
  length: number
  ttlMs: number
  links: Links
}

export function createSmsTexts(variants: ReadonlyMap<string, Variants>) {
  return {
    /**
     * The smallest length of each SMS: with a code, its time, and all other variables empty. `odd`: the characters outside
     * the GSM 7-bit alphabet.
     */
    smsLengths(
      code: TypicalCode,
    ): ({ template: string; locale: string; odd: string[] } & SmsLength)[] {
      return this.smsTexts(code, () => '').map(({ text, ...which }) => ({
        ...which,
        odd: notInGsm7(text),
        ...measureSms(text),
      }))
    },

    /**
     * The text of each SMS, with a code, its time and the longest link. `other` returns the values of all other variables.
     * `locale`: the name of the edition.
     */
    smsTexts(
      code: TypicalCode,
      other: (name: string) => string,
      names: readonly string[] = [...variants.keys()],
    ) {
      const validityIn = createValidityText(code.ttlMs)
      const longest = longestLink(code.links, code.length)
      const sms = channels.filter((channel) => channelFacts(channel).isSms)
      return names.flatMap((template) =>
        sms
          .flatMap((channel) => [...(variants.get(template)?.get(channel) ?? [])])
          .map(([edition, { variables, render }]) => {
            const { locale, country } = partsOf(edition)
            const known: Record<string, string> = {
              code: '0'.repeat(code.length),
              validity: validityIn(locale),
              minutes: String(minutesOf(code.ttlMs)),
            }
            const values = Object.fromEntries(
              [...variables].map((name) => [name, known[name] ?? other(name)]),
            )
            const link: Record<string, string> =
              longest && variables.has('code') ? { link: longest } : {}
            return { template, locale: edition, country, text: render({ ...values, ...link }).text }
          }),
      )
    },
  }
}
