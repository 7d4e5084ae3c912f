/**
 * Senders by country. Laws and carriers of a country decide which senders are allowed there, so one provider may need
 * several.
 */
import { z } from 'zod'
import { type ByCountry, isCountry, textFor } from '../base/by-country.ts'
import type { SendResult } from './provider.ts'

const countryOrDefault = z
  .string()
  .refine(
    (key) => key === 'default' || isCountry(key),
    'must be default, or the code of a country in two capitals, such as GB',
  )

/** The schema of a setting with one sender of this form, or with senders by country. */
export function senderByCountry(one: z.ZodType<string>): z.ZodType<ByCountry> {
  const byCountry = z
    .record(countryOrDefault, z.union([one, z.literal(false)]))
    .refine(
      (senders) => Object.values(senders).some((sender) => sender !== false),
      'has no sender for any country',
    )
  return z.union([one, byCountry])
}

/** True if there is a sender for numbers of the country, or no sender is set at all. */
export const hasSenderFor = (sender: ByCountry | undefined, country: string): boolean =>
  sender === undefined || textFor(sender, country) !== undefined

/** The result of a message to a country that a provider does not serve. Delivery does not call it for such a message. */
export const noSender = (kind: string): SendResult => ({
  kind: 'rejected',
  detail: `${kind}: no sender for this country`,
})
