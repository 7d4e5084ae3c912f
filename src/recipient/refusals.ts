import { mailboxOf } from './normalise-recipient.ts'

/** The recipients that the operator refuses, in their normal form. An address stands for its whole mailbox. */
export function createRefusals(recipients: readonly string[]) {
  let mailboxes = new Set(recipients.map(mailbox))

  return {
    isRefused: (to: string) => mailboxes.has(mailbox(to)),
    /** After a reload. */
    replace(recipients: readonly string[]): void {
      mailboxes = new Set(recipients.map(mailbox))
    },
  }
}

const mailbox = (to: string) => mailboxOf(to.includes('@') ? 'email' : 'sms', to)
