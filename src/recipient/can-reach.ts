/** Reports if a message can arrive, as far as Postern knows before the send. */
import type { Channel } from '../base/channel.ts'
import { createMailDomains } from './mail-domains.ts'
import { domainOf } from './normalise-recipient.ts'

/** May query DNS, so call it after the limits. Never throws. */
export type CanReach = (message: { app: string; channel: Channel; to: string }) => Promise<boolean>

/** Without `checkMx` no domain is looked up, and every recipient counts as reachable. */
export function openCanReach(
  { checkMx }: { checkMx: boolean },
  isTestRecipient: (channel: Channel, to: string) => boolean,
): { canReach: CanReach; close(): void } {
  if (!checkMx) return { canReach: async () => true, close: () => {} }
  const { takesMail, close } = createMailDomains()
  return {
    canReach: async ({ app, channel, to }) =>
      channel === 'sms' || isTestRecipient(channel, to) || takesMail(app, domainOf(to)),
    close,
  }
}
