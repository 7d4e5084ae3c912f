import { createHmac } from 'node:crypto'
import { isSameSecret } from './same-secret.ts'

/**
 * Signatures of the Standard Webhooks specification: HMAC-SHA256 over `id.timestamp.body`, so that
 * neither the message nor its moment can be changed, and an old one can't be played again.
 */
export interface SignedHeaders {
  readonly 'webhook-id': string
  readonly 'webhook-timestamp': string
  readonly 'webhook-signature': string
}

/** A signature is good for this long either way: clocks differ, and mail rooms are slow. */
const toleranceMs = 5 * 60_000

export function signWebhook(
  secret: string,
  id: string,
  atMs: number,
  body: string | Buffer,
): SignedHeaders {
  const timestamp = String(Math.floor(atMs / 1_000))
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${digest(secret, id, timestamp, body)}`,
  }
}

export function isSignedWebhook(
  secret: string,
  headers: Readonly<Record<string, unknown>>,
  body: string | Buffer,
  nowMs: number,
): boolean {
  const id = headers['webhook-id']
  const timestamp = headers['webhook-timestamp']
  const signatures = headers['webhook-signature']
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') {
    return false
  }
  if (!/^\d{1,12}$/.test(timestamp)) return false
  if (Math.abs(nowMs - Number(timestamp) * 1_000) > toleranceMs) return false
  const expected = `v1,${digest(secret, id, timestamp, body)}`
  // Several at once while the far end changes its secret.
  return signatures.split(' ', 10).some((signature) => isSameSecret(signature, expected))
}

/** Base64 that is none would make an empty key, and every signature would be easy to forge. */
export function isUsableSecret(secret: string): boolean {
  if (!secret.startsWith(prefix)) return secret.length >= minKeyBytes
  const key = Buffer.from(secret.slice(prefix.length), 'base64')
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(secret.slice(prefix.length))
  return isBase64 && key.length >= minKeyBytes
}

const minKeyBytes = 16
const prefix = 'whsec_'

/** The prefix announces base64; any other secret is taken as it is written. */
function digest(secret: string, id: string, timestamp: string, body: string | Buffer): string {
  const isEncoded = secret.startsWith(prefix)
  const key = isEncoded ? Buffer.from(secret.slice(prefix.length), 'base64') : secret
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
}
