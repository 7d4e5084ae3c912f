/**
 * Everything that is derived from `SECRET`. Each use has a separate key, so that no output of one use can replace
 * another. Data made with `SECRET_PREVIOUS` can be read too. It is the old secret, or the next one while some
 * processes use that already.
 */
import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { canonical } from '../base/canonical.ts'
import { createKeyedHash } from '../base/keyed-hash.ts'

export interface Secrets {
  /** Digests under which a code may be stored: current secret first, then the previous one. */
  codeDigests(parts: readonly string[]): string[]
  /** The keyed hash of a recipient for a new row. */
  recipientHash(channel: string, to: string): Buffer
  /** The hashes by which rows of a recipient are found: current secret first, then the previous one. */
  recipientHashes(channel: string, to: string): Buffer[]
  /** The subject of a pass, different in each app: current secret first, then the previous one. */
  passSubjects(app: string, channel: string, to: string): string[]
  /** Names of a subject in Redis keys: current secret first, then the previous one. */
  subjectHashes(parts: readonly string[]): string[]
  /** Keys that sign challenges and their answers: current secret first, then the previous one. */
  challengeKeys(parts: readonly string[]): string[]
  /** HMAC-MD5, as the product's design requires for the duplicate rule; 32 hex digits. */
  dedupeHash(parts: readonly string[]): string
  /** Encrypts with AES-256-GCM. `unseal` needs the same `context` (the notice id). */
  seal(plain: string, context: string): Buffer
  /** Throws if the data was altered, has another context, or its secret is gone. */
  unseal(sealed: Uint8Array, context: string): string
  /** Seals a text as a text, for addresses, cursors and lines. */
  sealText(plain: string, context: string): string
  /** Undefined if `unseal` would throw, or if the sealed text is spelled in another way. */
  unsealText(sealed: string, context: string): string | undefined
  /** One function per secret, current secret first. It makes 32 bytes for a number: the seed of the key that signs passes. */
  readonly passSeeds: readonly ((nth: number) => Buffer)[]
  /** The same for the key that signs the tokens of known browsers. */
  readonly knownSeeds: readonly ((nth: number) => Buffer)[]
  /** The key for the limiter's subjects. */
  readonly limiterKey: Buffer
}

const noBytes = Buffer.alloc(0)
const ivBytes = 12
const tagBytes = 16
/** The block of SHA-256 and of MD5. */
const hmacBlockBytes = 64

export function createSecrets(secret: string, previousSecret?: string): Secrets {
  const current = deriveKeys(secret)
  const all = previousSecret ? [current, deriveKeys(previousSecret)] : [current]

  let ivs = noBytes
  /** Drawn 256 at a time, because Node needs as long for 12 random bytes as for 3 kB. */
  function nextIv(): Buffer {
    if (ivs.length === 0) ivs = randomBytes(256 * ivBytes)
    const iv = ivs.subarray(0, ivBytes)
    ivs = ivs.subarray(ivBytes)
    return iv
  }

  function macs(use: 'challenge' | 'code' | 'passSubject', parts: readonly string[]) {
    const text = canonical(parts)
    return all.map((keys) => keys[use](text, 'base64url'))
  }

  function seal(plain: string, context: string): Buffer {
    const iv = nextIv()
    const cipher = createCipheriv('aes-256-gcm', current.seal, iv)
    cipher.setAAD(Buffer.from(context))
    const body = cipher.update(plain, 'utf8')
    cipher.final()
    return Buffer.concat([iv, cipher.getAuthTag(), body])
  }

  function unseal(sealed: Uint8Array, context: string): string {
    let failure: unknown
    for (const keys of all) {
      try {
        return unsealWith(keys.seal, sealed, context)
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }

  return {
    limiterKey: current.limiter,
    passSeeds: all.map(({ passSeed }) => passSeed),
    knownSeeds: all.map(({ knownSeed }) => knownSeed),
    codeDigests: (parts) => macs('code', parts),
    recipientHash: (channel, to) => hashRecipient(current, channel, to),
    recipientHashes: (channel, to) => all.map((keys) => hashRecipient(keys, channel, to)),
    passSubjects: (app, channel, to) => macs('passSubject', [app, channel, to]),
    subjectHashes(parts) {
      const text = canonical(parts)
      return all.map((keys) => keys.subject(text))
    },
    challengeKeys: (parts) => macs('challenge', parts),
    dedupeHash(parts) {
      return current.dedupe(canonical(parts), 'hex')
    },
    seal,
    unseal,
    sealText: (plain, context) => seal(plain, context).toString('base64url'),
    unsealText(text, context) {
      const sealed = Buffer.from(text, 'base64url')
      if (sealed.toString('base64url') !== text) return undefined
      try {
        return unseal(sealed, context)
      } catch {
        return undefined
      }
    },
  }
}

const hashRecipient = (keys: ReturnType<typeof deriveKeys>, channel: string, to: string) =>
  Buffer.from(keys.recipient(canonical([channel, to])), 'base64url')

function deriveKeys(secret: string) {
  const derive = (use: string) => Buffer.from(hkdfSync('sha256', secret, 'postern', use, 32))
  const mac = (use: string) => createHmac('sha256', derive(use))
  return {
    challenge: mac('challenge'),
    code: mac('code digest'),
    recipient: createKeyedHash(derive('recipient index')),
    subject: createKeyedHash(derive('redis subject')),
    dedupe: createHmac('md5', derive('duplicate rule')),
    limiter: derive('limiter subject'),
    // A key object, because Node prepares a raw key anew at every use.
    seal: createSecretKey(derive('notice seal')),
    passSubject: mac('pass subject'),
    passSeed: (nth: number) => derive(`pass key ${nth}`),
    knownSeed: (nth: number) => derive(`known key ${nth}`),
  }
}

/**
 * HMAC (RFC 2104) as two one-shot hashes. Node's `createHmac` makes and frees several native objects at each use, which
 * was a twelfth of an accepted send.
 */
function createHmac(algorithm: 'sha256' | 'md5', key: Buffer) {
  const padded = (byte: number) =>
    Buffer.alloc(hmacBlockBytes, byte).map((pad, at) => pad ^ (key[at] ?? 0))
  const inner = padded(0x36)
  const outer = Buffer.concat([padded(0x5c), hash(algorithm, '', 'buffer')])
  return (text: string, encoding: 'hex' | 'base64url'): string => {
    const body = Buffer.allocUnsafe(hmacBlockBytes + Buffer.byteLength(text))
    body.set(inner)
    body.write(text, hmacBlockBytes)
    outer.write(hash(algorithm, body, 'binary'), hmacBlockBytes, 'binary')
    return hash(algorithm, outer, encoding)
  }
}

function unsealWith(key: KeyObject, sealed: Uint8Array, context: string): string {
  const iv = sealed.subarray(0, ivBytes)
  // With a set length, Node refuses a cut tag. Otherwise it would check only the remaining bytes.
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(context))
  decipher.setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes))
  const plain = decipher.update(sealed.subarray(ivBytes + tagBytes), undefined, 'utf8')
  return plain + decipher.final('utf8')
}
