/** Whether a message can arrive, as far as that is known before it is sent. */
import type { Channel } from '../base/channel.ts'
import { domainOf } from './facets.ts'
import type { MailDomains } from './mail-domains.ts'
import type { TestRecipients } from './test-recipients.ts'

/** May ask DNS: who asks has been past the limits. Never throws. */
export type CanReach = (message: { app: string; channel: Channel; to: string }) => Promise<boolean>

export function createCanReach(
  { takesMail }: Pick<MailDomains, 'takesMail'>,
  { isTestRecipient }: Pick<TestRecipients, 'isTestRecipient'>,
): CanReach {
  return async ({ app, channel, to }) =>
    channel === 'sms' || isTestRecipient(channel, to) || takesMail(app, domainOf(to))
}
