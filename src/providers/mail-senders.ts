import { isDeepStrictEqual } from 'node:util'
import type { ProviderSetUp } from './kinds.ts'
import type { DkimSettings } from './smtp/dkim.ts'
import type { SmtpSettings } from './smtp/settings.ts'

interface MailSender {
  /** The private key is absent if the mail server or SES signs. */
  readonly signers: readonly (Omit<DkimSettings, 'privateKey'> & Partial<DkimSettings>)[]
  /** True if the envelope of mails has this domain. SES puts another domain there. */
  readonly isInEnvelope: boolean
}

/** The senders of mails by domain. `selector` is the one that the mail server or SES signs with, if known. */
export function mailSendersOf(
  providers: ReadonlyMap<string, ProviderSetUp>,
  selector: string | undefined,
): ReadonlyMap<string, MailSender> {
  const senders = new Map<string, MailSender>()
  for (const { kind, settings } of providers.values()) {
    const isSmtp = kind.kind === 'smtp'
    if (!isSmtp && kind.kind !== 'ses') continue
    const { from, dkim } = settings as Pick<SmtpSettings, 'from' | 'dkim'>
    const domain = from.address.slice(from.address.lastIndexOf('@') + 1).toLowerCase()
    const ofServer = selector === undefined ? [] : [{ domain, selector }]
    const known = senders.get(domain) ?? { signers: ofServer, isInEnvelope: false }
    const isKnown = known.signers.some((signer) => isDeepStrictEqual(signer, dkim))
    senders.set(domain, {
      signers: dkim && !isKnown ? [...known.signers, dkim] : known.signers,
      isInEnvelope: known.isInEnvelope || isSmtp,
    })
  }
  return senders
}
