/**
 * DKIM signatures (RFC 6376) of mails: RSA with SHA-256, relaxed.
 *
 * nodemailer sends a mail without a signature if the key can't sign. So a key is tested when the settings are read.
 */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import DKIM from 'nodemailer/lib/dkim'
import { z } from 'zod'

/** RFC 8301. Receivers ignore a signature of a smaller key. */
const leastBits = 1_024

/** Problems never contain the value, because it may be the key. */
const privateKeyIn = (folder: string) =>
  z.string().transform((given, context): KeyObject => {
    const problem = (message: string) => {
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    }
    let pem = given
    try {
      if (!given.includes('-----BEGIN')) pem = readFileSync(resolve(folder, given), 'utf8')
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException
      return problem(
        `neither a key that begins with -----BEGIN nor a file that can be read (${code})`,
      )
    }
    if (pem.includes('ENCRYPTED')) {
      return problem('the key is locked with a passphrase; store it without one')
    }
    try {
      const key = createPrivateKey(pem)
      if (key.asymmetricKeyType !== 'rsa') return problem('must be an RSA key')
      const bits = key.asymmetricKeyDetails?.modulusLength ?? 0
      return bits < leastBits ? problem(`an RSA key of ${bits} bits; receivers want 2048`) : key
    } catch {
      return problem('must be a private key in PEM form (openssl genrsa 2048)')
    }
  })

const domain = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/
const selector = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i

export const dkimSettingsIn = (folder: string) =>
  z.strictObject({
    domain: z.string().max(253).toLowerCase().regex(domain, 'must be a domain, e.g. acme.test'),
    selector: z.string().max(63).regex(selector, 'must be a selector, e.g. mail2026'),
    privateKey: privateKeyIn(folder),
  })

export type DkimSettings = z.infer<ReturnType<typeof dkimSettingsIn>>

/** The headers of Postern. RFC 8058 demands that `List-Unsubscribe-Post` is signed. */
const signedHeaders = [
  'From:To:Subject:Date:Message-ID:MIME-Version:Content-Type:Content-Transfer-Encoding',
  'Auto-Submitted:List-Unsubscribe:List-Unsubscribe-Post',
].join(':')

/** Returns a function that puts the signature before a mail. */
export function createSigner({ domain, selector, privateKey }: DkimSettings) {
  const dkim = new DKIM({
    domainName: domain,
    keySelector: selector,
    privateKey,
    headerFieldNames: signedHeaders,
  })
  return (mail: Buffer): Promise<Buffer> => buffer(dkim.sign(mail))
}
