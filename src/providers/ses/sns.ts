/**
 * Messages of Amazon SNS to an address of Postern. SNS signs each one with a key whose certificate it names in the message
 * (https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html). Anyone can send such a message, and can name any
 * address. So a certificate is read only over TLS, and only from a host of SNS. Strangers could still name many certificates of
 * that host. So the ones that have signed a message are kept apart, and the number of look-ups in a minute is limited.
 */
import { createVerify, type KeyObject, X509Certificate } from 'node:crypto'
import { z } from 'zod'
import { createBoundedMap } from '../../base/bounded-map.ts'
import { callOnce } from '../../base/http-client.ts'
import { parseObject } from '../../base/json.ts'
import { createSample } from '../../base/sample.ts'

const text = z.string().max(300_000)

const envelope = z.object({
  Type: z.enum(['Notification', 'SubscriptionConfirmation', 'UnsubscribeConfirmation']),
  ...{ Message: text, MessageId: text, Timestamp: text, TopicArn: text },
  ...{ Subject: text.nullish(), Token: text.optional(), SubscribeURL: text.optional() },
  SignatureVersion: z.enum(['1', '2']),
  ...{ Signature: text, SigningCertURL: text },
})
export type SnsMessage = z.infer<typeof envelope>

/** Undefined for any other text. */
export const readSnsMessage = (body: string): SnsMessage | undefined =>
  envelope.safeParse(parseObject(body)).data

/** The signed fields in the order of their names. */
const signedFields = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  Confirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
} as const

/** The text that SNS has signed: the name and the value of each field, one per line. A missing field is left out. */
function signedText(message: SnsMessage): string {
  const { Type } = message
  const fields = signedFields[Type === 'Notification' ? Type : 'Confirmation']
  return fields
    .flatMap((name) => (message[name] == null ? [] : [`${name}\n${message[name]}\n`]))
    .join('')
}

const digests = { 1: 'RSA-SHA1', 2: 'RSA-SHA256' } as const

const maxKept = 20
/** One spelling for each certificate: with a query, strangers could name the same file in any number of ways. */
const certificatePath = /^\/[\w-]+\.pem$/
const maxChain = 5
const callsPerMinute = 20
/** After a certificate that could not be read. */
const againAfterMs = 10_000
const timeoutMs = 3_000

interface Certificate {
  key: KeyObject
  fromMs: number
  untilMs: number
}

/** `ownOrigin`: another place of AWS in the settings, such as a simulator. */
export function createSns(ownOrigin: string | undefined) {
  const certificates = createBoundedMap<Certificate>(maxKept)
  /** Certificates that have signed a message. */
  const proven = createBoundedMap<Certificate>(maxKept)
  /** When a certificate that could not be read is read again. Kept apart, so that strangers cannot push out a known one. */
  const failures = createBoundedMap<number>(maxKept)
  const loading = new Map<string, Promise<void>>()
  const mayLook = createSample(callsPerMinute, 60_000)
  const mayConfirm = createSample(callsPerMinute, 60_000)

  /** Only SNS answers there. */
  function isOfSns(address: string | undefined): address is string {
    const url = address === undefined ? null : URL.parse(address)
    if (url === null) return false
    if (url.origin === ownOrigin) return true
    const isHost = /^sns\.[a-z]{2,}(-[a-z]+)+-\d\.amazonaws\.com(\.cn)?$/.test(url.hostname)
    return url.protocol === 'https:' && isHost && url.port === '' && url.username === ''
  }

  function isCertificate(address: string): boolean {
    if (!isOfSns(address)) return false
    const { origin, pathname, href } = new URL(address)
    if (origin === ownOrigin) return pathname.endsWith('.pem')
    return certificatePath.test(pathname) && href === `${origin}${pathname}` && href === address
  }

  const certificateOf = (url: string) => proven.get(url) ?? certificates.get(url)

  async function get(url: string): Promise<string | undefined> {
    const answer = await callOnce({ method: 'GET', url, headers: {} }, timeoutMs)
    return answer.kind === 'answered' && answer.status === 200 ? answer.body : undefined
  }

  async function load(url: string, nowMs: number): Promise<void> {
    const certificate = readCertificate(await get(url))
    if (certificate) certificates.set(url, certificate)
    else failures.set(url, nowMs + againAfterMs)
  }

  return {
    isOfSns,
    isCertificate,

    /** Reads the certificate of a message, unless it is known. False if it cannot be read now. Never rejects. */
    async fetchCertificate({ SigningCertURL: url }: SnsMessage, nowMs: number): Promise<boolean> {
      if (!isCertificate(url)) return true
      if ((certificateOf(url)?.untilMs ?? 0) > nowMs) return true
      if ((failures.get(url) ?? 0) > nowMs) return false
      let work = loading.get(url)
      if (!work) {
        if (!mayLook(nowMs)) return false
        work = load(url, nowMs).finally(() => loading.delete(url))
        loading.set(url, work)
      }
      await work
      return certificateOf(url) !== undefined
    },

    /** Whether SNS signed this message. False if its certificate was not fetched. */
    isSigned(message: SnsMessage, nowMs: number): boolean {
      const { SigningCertURL: url, Signature, SignatureVersion } = message
      const known = certificateOf(url)
      if (!known || known.fromMs > nowMs || known.untilMs <= nowMs) return false
      const isSigned = createVerify(digests[SignatureVersion])
        .update(signedText(message))
        .verify(known.key, Signature, 'base64')
      if (isSigned && proven.get(url) !== known) proven.set(url, known)
      return isSigned
    },

    /**
     * Calls the address that confirms a subscription. False if it gave no success. Anyone can repeat a signed message, so the
     * number of calls in a minute is limited.
     */
    confirm: async ({ SubscribeURL: url }: SnsMessage, nowMs: number): Promise<boolean> =>
      isOfSns(url) && mayConfirm(nowMs) && (await get(url)) !== undefined,
  }
}

/** The first certificate of a file. Further ones must have issued the one before. */
function readCertificate(pem: string | undefined): Certificate | undefined {
  try {
    const chain = (pem ?? '')
      .split(/(?=-----BEGIN CERTIFICATE-----)/)
      .filter((part) => part.startsWith('-----BEGIN'))
      .slice(0, maxChain)
      .map((part) => new X509Certificate(part))
    const isChain = chain.every((one, index) => {
      const issuer = chain[index + 1]
      return !issuer || (one.checkIssued(issuer) && one.verify(issuer.publicKey))
    })
    const [own] = chain
    if (!own || !isChain || own.publicKey.asymmetricKeyType !== 'rsa') return undefined
    const [fromMs, untilMs] = [own.validFrom, own.validTo].map((date) => Date.parse(date))
    return { key: own.publicKey, fromMs: fromMs as number, untilMs: untilMs as number }
  } catch {
    return undefined
  }
}
