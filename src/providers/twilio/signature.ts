import { createHmac } from 'node:crypto'
import { isSameSecret } from '../../crypto/same-secret.ts'

/**
 * X-Twilio-Signature: HMAC-SHA1 with the auth token over the address as Twilio called it, followed by
 * every form field, name then value, sorted by name. The values are as meant, not as encoded. Of a
 * repeated field Twilio signs the distinct values in order.
 *
 * One pass over the fields: who sent them is not known before this is done.
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
