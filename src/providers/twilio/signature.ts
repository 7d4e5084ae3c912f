import { createHmac } from 'node:crypto'
import { isSameSecret } from '../../base/same-secret.ts'

/**
 * X-Twilio-Signature: HMAC-SHA1 with the auth token over the address as Twilio called it, followed by
 * every form field, name then value, sorted by name. The values are as meant, not as encoded.
 */
export function signTwilio(authToken: string, url: string, form: URLSearchParams): string {
  const fields = [...new Set(form.keys())].sort().map((name) => {
    // Twilio signs a repeated field's distinct values in order.
    const values = [...new Set(form.getAll(name))].sort()
    return values.map((value) => name + value).join('')
  })
  return createHmac('sha1', authToken)
    .update(url + fields.join(''))
    .digest('base64')
}

export function isSignedByTwilio(
  authToken: string,
  url: string,
  form: URLSearchParams,
  signature: unknown,
): boolean {
  return typeof signature === 'string' && isSameSecret(signature, signTwilio(authToken, url, form))
}
