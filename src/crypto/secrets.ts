/**
 * Everything that is derived from `SECRET`. Each use has a key of its own, so that no output of one
 * can stand in for another. What `SECRET_PREVIOUS` made can be read too: the secret before, or the next one while some
 * processes make everything with that already.
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
  /** Digests under which a code may be stored: the current one first, then the previous secret's. */
  codeDigests(parts: readonly string[]): string[]
  /** Keyed hashes of a recipient, current first: how rows are found without a readable index. */
  recipientHashes(channel: string, to: string): Buffer[]
  /** Who a pass is about, another one in each app: the current one first, then the previous secret's. */
  passSubjects(app: string, channel: string, to: string): string[]
  /** Names of a subject in Redis keys: the current one first, then the previous secret's. */
  subjectHashes(parts: readonly string[]): string[]
  /** Marks on cursors, which prove that we gave them: the current one first, then the previous secret's. */
  cursorMarks(parts: readonly string[]): string[]
  /** Keys by which challenges and their answers are signed: the current secret's first, then the previous one's. */
  challengeKeys(parts: readonly string[]): string[]
  /** HMAC-MD5, as the duplicate rule of the product's design card asks; 32 hex digits. */
  dedupeHash(parts: readonly string[]): string
  /** AES-256-GCM. `context` (the notice id) must be the same to open it again. */
  seal(plain: string, context: string): Buffer
  /** Throws when the data was altered, belongs to another context, or its secret is gone. */
  unseal(sealed: Uint8Array, context: string): string
  /** Of each secret, the current one first: 32 bytes for a number, of which a signing key is made. */
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
  // Key objects, because Node prepares a raw key anew at every use: 16 µs against 2 for one HMAC.
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
  // With the length said, a cut tag is refused; Node would otherwise check only what is left of it.
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(context))
  decipher.setAuthTag(sealed.subarray(ivBytes, ivBytes + tagBytes))
  const plain = decipher.update(sealed.subarray(ivBytes + tagBytes), undefined, 'utf8')
  return plain + decipher.final('utf8')
}
