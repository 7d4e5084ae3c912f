import { createHmac } from 'node:crypto'
import { isSameSecret } from './same-secret.ts'

/**
 * Signatures of the Standard Webhooks specification: HMAC-SHA256 over `id.timestamp.body`. So message and time can't
 * be changed, and an old message can't be replayed.
 */
export interface SignedHeaders {
  readonly 'webhook-id': string
  readonly 'webhook-timestamp': string
  readonly 'webhook-signature': string
}

/** A signature is valid this long in both directions, because clocks differ and webhooks can be late. */
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
  const signed = signedHead(headers, nowMs)
  if (!signed) return false
  const expected = `v1,${digest(secret, signed.id, signed.timestamp, body)}`
  // Senders sign with several secrets while they change one. Supabase writes a comma behind each signature too.
  return signed.signatures.split(/,? /, 10).some((one) => isSameSecret(one, expected))
}

/** False if no body can make the request valid: missing headers, or a time too far from now. */
export function mayBeSignedWebhook(
  headers: Readonly<Record<string, unknown>>,
  nowMs: number,
): boolean {
  return signedHead(headers, nowMs) !== undefined
}

function signedHead(headers: Readonly<Record<string, unknown>>, nowMs: number) {
  const id = headers['webhook-id']
  const timestamp = headers['webhook-timestamp']
  const signatures = headers['webhook-signature']
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') {
    return undefined
  }
  if (!/^\d{1,12}$/.test(timestamp)) return undefined
  const isTimely = Math.abs(nowMs - Number(timestamp) * 1_000) <= toleranceMs
  return isTimely ? { id, timestamp, signatures } : undefined
}

/**
 * Invalid base64 would give an empty key, which anyone could sign with. Text before the prefix, such as Supabase's `v1,`,
 * would make the base64 itself the key. The other side would have another key.
 */
export function isUsableSecret(secret: string): boolean {
  if (!secret.startsWith(prefix)) return secret.length >= minKeyBytes && !secret.includes(prefix)
  const key = Buffer.from(secret.slice(prefix.length), 'base64')
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(secret.slice(prefix.length))
  return isBase64 && key.length >= minKeyBytes
}

const minKeyBytes = 16
const prefix = 'whsec_'

/** The prefix marks base64; other secrets are used as they are. */
function digest(secret: string, id: string, timestamp: string, body: string | Buffer): string {
  const isEncoded = secret.startsWith(prefix)
  const key = isEncoded ? Buffer.from(secret.slice(prefix.length), 'base64') : secret
  return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')
}
