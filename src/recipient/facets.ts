/** Parts of a normalised recipient that limits may count. */
import type { Channel } from '../base/channel.ts'

/** A phone number without its last four digits, or a mail's domain: the common part of an attacker's addresses. */
export function prefixOf(channel: Channel, to: string): string {
  return channel === 'sms' ? to.slice(0, -4) : domainOf(to)
}

export const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)

/** Google treats both as the same domain. */
const gmailDomains = new Set(['gmail.com', 'googlemail.com'])

/**
 * The mailbox of an address: without a plus-tag, and for Gmail without dots. For a few servers the plus sign has no
 * meaning. There, several people share one count.
 */
export function mailboxOf(channel: Channel, to: string): string {
  if (channel === 'sms') return to
  const at = to.lastIndexOf('@')
  const [local = ''] = to.slice(0, at).split('+', 1)
  const domain = to.slice(at + 1)
  if (!gmailDomains.has(domain)) return `${local || to.slice(0, at)}@${domain}`
  return `${local.replaceAll('.', '')}@gmail.com`
}
