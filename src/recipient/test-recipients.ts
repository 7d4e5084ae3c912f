/**
 * Test recipients: for the reviewers of app stores, and for tests of other products. They have fixed codes, and
 * nothing is sent to them. After their last day they are normal recipients, so every request checks the date.
 */
import type { Channel } from '../base/channel.ts'
import type { Log } from '../base/log.ts'
import { channelsOfKind, maskRecipient } from './channels.ts'
import { readAddress } from './normalise-recipient.ts'

export interface Testing {
  recipients: readonly { to: string; code: string }[]
  /** The last day, in UTC. */
  until?: string | undefined
}

export type TestRecipients = ReturnType<typeof createTestRecipients>

const dayMs = 86_400_000

export function createTestRecipients(
  { recipients, until }: Testing,
  options: {
    /** For numbers without a country code. */
    defaultCountry?: string | undefined
    nowMs: () => number
  },
) {
  const endsAtMs = until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until) + dayMs
  const all = recipients.flatMap(({ to, code }) => {
    const known = readAddress(to, options.defaultCountry)
    return known ? [{ ...known, code }] : []
  })
  const codes = new Map(all.map(({ to, code }) => [to, code]))
  const isOver = () => codes.size === 0 || options.nowMs() >= endsAtMs

  /** Takes a normalised recipient. */
  const codeOf = (to: string): string | undefined => (isOver() ? undefined : codes.get(to))

  return {
    codeOf,
    isTestRecipient: (to: string) => codeOf(to) !== undefined,
    /** The current test recipients, each with one of its channels, without their codes. */
    list: (): { channel: Channel; to: string }[] =>
      isOver()
        ? []
        : all.map(({ kind, to }) => ({ channel: channelsOfKind(kind)[0] as Channel, to })),
  }
}

const maxNamed = 20

/** Anyone who reads the policy file knows their codes, so the log warns about them. */
export function warnOfTestRecipients(
  list: ReturnType<TestRecipients['list']>,
  until: string | undefined,
  log: Pick<Log, 'testRecipients'>,
): void {
  if (list.length === 0) return
  const recipients = list.slice(0, maxNamed).map(({ channel, to }) => maskRecipient(channel, to))
  log.testRecipients({ count: list.length, recipients, until: until ?? 'for ever' })
}
