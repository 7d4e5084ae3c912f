/**
 * The format of an API key: a prefix for its kind, 32 random bytes, and a checksum of both. A made-up, cut or mistyped
 * key is refused without PostgreSQL. The checksum is no secret; it only keeps careless guesses away from PostgreSQL.
 */
import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

export type KeyKind = keyof typeof prefixes

/** `secret` keys belong on servers, `publishable` keys may stand in a page, `operator` keys open the console. */
const prefixes = { secret: 'psk_', publishable: 'ppk_', operator: 'pok_' } as const

export const keyKinds = Object.keys(prefixes) as readonly KeyKind[]

const kindByPrefix = new Map(
  Object.entries(prefixes).map(([kind, prefix]) => [prefix as string, kind as KeyKind]),
)

/** A new key, 53 characters long. */
export function createKeyToken(kind: KeyKind): string {
  const body = prefixes[kind] + randomBytes(32).toString('base64url')
  return body + checksumOf(body)
}

/** Undefined for a text that `createKeyToken` can't have made. */
export function keyKindOf(token: string): KeyKind | undefined {
  if (!/^[a-z]{3}_[\w-]{49}$/.test(token)) return undefined
  const isWhole = checksumOf(token.slice(0, -checksumLength)) === token.slice(-checksumLength)
  return isWhole ? kindByPrefix.get(token.slice(0, 4)) : undefined
}

/** The start of a key, enough to recognise it but not to guess the rest: `ppk_Ab3dEf`. */
export const shownPrefixOf = (token: string) => token.slice(0, 10)

const checksumLength = 6

function checksumOf(body: string): string {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(crc32(body))
  return bytes.toString('base64url')
}
