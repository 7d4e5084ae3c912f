/** The section `links`: for each scene the page that a link beside the code opens. */
import { z } from 'zod'
import { shortName } from '../base/names.ts'

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

export const links = z
  .record(shortName, address)
  .transform((found): ReadonlyMap<string, string> => new Map(Object.entries(found)))
  .prefault({})
