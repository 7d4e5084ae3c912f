/**
 * Everything that is derived from `SECRET`. Each use has a separate key, so that no output of one use can replace
 * another. Data made with `SECRET_PREVIOUS` can be read too. It is the old secret, or the next one while some
 * processes use that already.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { canonical } from '../base/canonical.ts'
import { createKeyedHash } from '../base/keyed-hash.ts'

export interface Secrets {
  /** Digests under which a code may be stored: current secret first, then the previous one. */
  codeDigests(parts: readonly string[]): string[]
  /** Keyed hashes of a recipient, current first, to find rows without a readable index. */
  recipientHashes(channel: string, to: string): Buffer[]
  /** The subject of a pass, different in each app: current secret first, then the previous one. */
  passSubjects(app: string, channel: string, to: string): string[]
  /** Names of a subject in Redis keys: current secret first, then the previous one. */
  subjectHashes(parts: readonly string[]): string[]
  /** Marks that prove that Postern made a cursor: current secret first, then the previous one. */
  cursorMarks(parts: readonly string[]): string[]
  /** Keys that sign challenges and their answers: current secret first, then the previous one. */
  challengeKeys(parts: readonly string[]): string[]
  /** HMAC-MD5, as the product's design requires for the duplicate rule; 32 hex digits. */
  dedupeHash(parts: readonly string[]): string
  /** Encrypts with AES-256-GCM. `unseal` needs the same `context` (the notice id). */
  seal(plain: string, context: string): Buffer
  /** Throws if the data was altered, has another context, or its secret is gone. */
  unseal(sealed: Uint8Array, context: string): string
  /** One function per secret, current secret first. It makes 32 bytes for a number: the seed of a signing key. */
  readonly passSeeds: readonly ((nth: number) => Buffer)[]
  /** The key for the limiter's subjects. */
  readonly limiterKey: Buffer
}

const ivBytes = 12
const tagBytes = 16

export function createSecrets(secret: string, previousSecret?: string): Secrets {
  const current = deriveKeys(secret)
  const all = previousSecret ? [current, deriveKeys(previousSecret)] : [current]

  function macs(
    use: 'challenge' | 'code' | 'cursor' | 'passSubject',
    parts: readonly string[],
    bytes?: number,
  ): string[] {
    const text = canonical(parts)
    return all.map((keys) => hmac('sha256', keys[use], text).toString('base64url', 0, bytes))
  }

  return {
    limiterKey: current.limiter.export(),
    passSeeds: all.map(({ passSeed }) => passSeed),
    codeDigests: (parts) => macs('code', parts),
    recipientHashes(channel, to) {
      const text = canonical([channel, to])
      return all.map((keys) => Buffer.from(keys.recipient(text), 'base64url'))
    },
    passSubjects: (app, channel, to) => macs('passSubject', [app, channel, to]),
    subjectHashes(parts) {
      const text = canonical(parts)
      return all.map((keys) => keys.subject(text))
    },
    cursorMarks: (parts) => macs('cursor', parts, 16),
    challengeKeys: (parts) => macs('challenge', parts),
    dedupeHash(parts) {
      return hmac('md5', current.dedupe, canonical(parts)).toString('hex')
    },
    seal(plain, context) {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', current.seal, iv)
      cipher.setAAD(Buffer.from(context))
      const body = cipher.update(plain, 'utf8')
      cipher.final()
      return Buffer.concat([iv, cipher.getAuthTag(), body])
    },
    unseal(sealed, context) {
      let failure: unknown
      for (const keys of all) {
        try {
          return unsealWith(keys.seal, sealed, context)
        } catch (error) {
          failure = error
        }
      }
      throw failure
    },
  }
}

function deriveKeys(secret: string) {
  // Key objects, because Node prepares a raw key anew at every use: 16 µs instead of 2 per HMAC.
  const derive = (use: string) =>
    createSecretKey(Buffer.from(hkdfSync('sha256', secret, 'postern', use, 32)))
  return {
    challenge: derive('challenge'),
    code: derive('code digest'),
    cursor: derive('cursor mark'),
    recipient: createKeyedHash(derive('recipient index').export()),
    subject: createKeyedHash(derive('redis subject').export()),
    dedupe: derive('duplicate rule'),
    limiter: derive('limiter subject'),
    seal: derive('notice seal'),
    passSubject: derive('pass subject'),
    passSeed: (nth: number) => derive(`pass key ${nth}`).export(),
  }
}

function hmac(algorithm: 'sha256' | 'md5', key: KeyObject, text: string): Buffer {
  return createHmac(algorithm, key).update(text).digest()
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
