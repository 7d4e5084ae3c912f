/**
 * Senders by country. Laws and carriers of a country decide which senders are allowed there, so one provider may need
 * several.
 */
import { isSupportedCountry } from 'libphonenumber-js/max'
import { z } from 'zod'

/** One sender for all countries, or senders by country. `false`: the provider does not serve that country. */
export type Sender = string | Readonly<Record<string, string | false>>

const countryOrDefault = z
  .string()
  .refine(
    (key) => key === 'default' || isSupportedCountry(key),
    'must be default, or the code of a country in two capitals, such as GB',
  )

/** The schema of a setting with one sender of this form, or with senders by country. */
export function senderByCountry(one: z.ZodType<string>): z.ZodType<Sender> {
  const byCountry = z
    .record(countryOrDefault, z.union([one, z.literal(false)]))
    .refine(
      (senders) => Object.values(senders).some((sender) => sender !== false),
      'has no sender for any country',
    )
  return z.union([one, byCountry])
}

/** The sender for numbers of a country. Undefined if the provider does not serve the country. */
export function senderFor(sender: Sender, country = ''): string | undefined {
  if (typeof sender === 'string') return sender
  const own = Object.hasOwn(sender, country) ? sender[country] : sender.default
  return own === false ? undefined : own
}
