/** The sections `links`, `workflows` and `recipients.suppress` of the policy file. */
import { z } from 'zod'
import { channels } from '../base/channel.ts'
import { duration } from '../base/durations.ts'
import { shortName } from '../base/names.ts'
import { defaultSuppressFor } from '../base/suppression.ts'

const addressText = /^https?:\/\/[\w.~:/?[\]@!$&'()*+,;=%-]+$/i

/** Without a fragment, where the code will stand, and without a login, which a browser would show. */
function isLinkAddress(text: string): boolean {
  const url = addressText.test(text) ? URL.parse(text) : null
  if (!url || url.username || url.password) return false
  return url.protocol === 'https:' || ['localhost', '127.0.0.1'].includes(url.hostname)
}

const address = z
  .string()
  .max(1_000)
  .refine(
    isLinkAddress,
    'must be an address such as https://shop.example/verify, without a fragment (#…) or a login; http:// only on localhost or 127.0.0.1',
  )

/** For each scene the page that a link beside the code opens. */
export const links = z
  .record(shortName, address)
  .transform((found): ReadonlyMap<string, string> => new Map(Object.entries(found)))
  .prefault({})

/** The channels of each workflow. */
export const workflows = z
  .record(
    shortName,
    z
      .array(z.enum(channels))
      .min(1)
      .refine((list) => new Set(list).size === list.length, 'must have each channel once'),
  )
  .default({})

const durationOrOff = z.union([z.literal(false), duration], {
  error: 'must be a duration such as 7d, or false',
})

export const suppress = z
  .strictObject({
    bounced: durationOrOff.default(defaultSuppressFor.bounced),
    complained: durationOrOff.default(defaultSuppressFor.complained),
    optedOut: durationOrOff.default(defaultSuppressFor.optedOut),
  })
  .prefault({})
