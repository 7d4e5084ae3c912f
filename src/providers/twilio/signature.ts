import { createHmac } from 'node:crypto'
import { isSameSecret } from '../../crypto/same-secret.ts'

/**
 * X-Twilio-Signature: HMAC-SHA1 with the auth token over the called address, followed by name and value of every form
 * field, sorted by name. The values are decoded. Of a repeated field, Twilio signs the distinct values in order.
 *
 * The fields are read once, so that a call of a stranger costs little.
 */
export function signTwilio(authToken: string, url: string, form: URLSearchParams): string {
  const valuesByName = new Map<string, Set<string>>()
  for (const [name, value] of form) {
    const values = valuesByName.get(name)
    if (values) values.add(value)
    else valuesByName.set(name, new Set([value]))
  }
  const hmac = createHmac('sha1', authToken).update(url)
  for (const name of [...valuesByName.keys()].sort()) {
    for (const value of [...(valuesByName.get(name) ?? [])].sort()) hmac.update(name + value)
  }
  return hmac.digest('base64')
}

export function isSignedByTwilio(
  authToken: string,
  url: string,
  form: URLSearchParams,
  signature: unknown,
): boolean {
  return typeof signature === 'string' && isSameSecret(signature, signTwilio(authToken, url, form))
}
