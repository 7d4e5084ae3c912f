import { createHmac } from 'node:crypto'
import { isSameSecret } from '../../crypto/same-secret.ts'

/**
 * X-Twilio-Signature: HMAC-SHA1 with the auth token over the called address, followed by name and value of every form
 * field, sorted by name. The values are decoded. Of a repeated field, Twilio signs the distinct values in order. The fields
 * are read once, so that a call of a stranger costs little.
 */
function signedFields(form: URLSearchParams): string {
  const valuesByName = new Map<string, Set<string>>()
  for (const [name, value] of form) {
    const values = valuesByName.get(name)
    if (values) values.add(value)
    else valuesByName.set(name, new Set([value]))
  }
  return [...valuesByName.keys()]
    .sort()
    .flatMap((name) => [...(valuesByName.get(name) ?? [])].sort().map((value) => name + value))
    .join('')
}

const sign = (authToken: string, url: string, fields: string) =>
  createHmac('sha1', authToken).update(url).update(fields).digest('base64')

/** Every form of the address counts: Twilio signs with or without the port, the login and the fragment. */
export function isSignedByTwilio(
  authToken: string,
  url: string,
  form: URLSearchParams,
  signature: unknown,
): boolean {
  if (typeof signature !== 'string') return false
  const fields = signedFields(form)
  return formsOf(url).some((one) => isSameSecret(signature, sign(authToken, one, fields)))
}

/**
 * The forms of an address that Twilio may sign. Its libraries accept the address with and without a port
 * (https://www.twilio.com/docs/usage/webhooks/webhooks-security).
 */
function formsOf(text: string): string[] {
  const { protocol, username, password, hostname, port, pathname, search, hash } = new URL(text)
  const login = username === '' && password === '' ? '' : `${username}:${password}@`
  const standardPort = protocol === 'https:' ? ':443' : ':80'
  const forms = [text]
  for (const ofLogin of new Set([login, '']))
    for (const ofPort of new Set([port === '' ? standardPort : `:${port}`, '']))
      for (const ofHash of new Set([hash, '']))
        forms.push(`${protocol}//${ofLogin}${hostname}${ofPort}${pathname}${search}${ofHash}`)
  return [...new Set(forms)]
}
