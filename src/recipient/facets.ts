/** What limits may count beside a recipient itself; each takes one that is normalised. */
import type { Channel } from '../base/channel.ts'

/** A phone number without its last four digits, a mail's domain: what an attacker's addresses have in common. */
export function prefixOf(channel: Channel, to: string): string {
  return channel === 'sms' ? to.slice(0, -4) : domainOf(to)
}

export const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)

/** Google reads both as one. */
const gmailDomains = new Set(['gmail.com', 'googlemail.com'])

/**
 * The address as its provider sees it: without a plus-tag, and for Gmail without dots. Whose mail it is on
 * servers that give the plus sign no meaning is counted together too; that is rare, and only counted.
 */
export function mailboxOf(channel: Channel, to: string): string {
  if (channel === 'sms') return to
  const at = to.lastIndexOf('@')
  const [local = ''] = to.slice(0, at).split('+', 1)
  const domain = to.slice(at + 1)
  if (!gmailDomains.has(domain)) return `${local || to.slice(0, at)}@${domain}`
  return `${local.replaceAll('.', '')}@gmail.com`
}
