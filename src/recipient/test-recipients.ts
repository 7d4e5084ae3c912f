/**
 * Test recipients: for the reviewers of app stores and for the tests of other people's products. They have a
 * code of their own, nothing is ever sent to them, and after their last day they are recipients like any
 * other; so that is looked at with every request, not at the start alone.
 */
import type { Channel } from '../base/channel.ts'
import { readEmailAddress } from './email-address.ts'
import { createPhoneReader } from './phone-number.ts'

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
    /** For numbers written without a country code. */
    defaultCountry?: string | undefined
    nowMs: () => number
  },
) {
  const endsAtMs = until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until) + dayMs
  const all = recipients.flatMap(({ to, code }) => {
    const known = readTestRecipient(to, options.defaultCountry)
    return known ? [{ ...known, code }] : []
  })
  const codes = new Map(all.map(({ to, code }) => [to, code]))
  const isOver = () => codes.size === 0 || options.nowMs() >= endsAtMs

  /** Takes a normalised recipient. No number is an address, so the channel adds nothing. */
  const codeOf = (_: Channel, to: string): string | undefined =>
    isOver() ? undefined : codes.get(to)

  return {
    codeOf,
    isTestRecipient: (channel: Channel, to: string) => codeOf(channel, to) !== undefined,
    /** Those there are now. */
    list: (): { channel: Channel; to: string }[] => (isOver() ? [] : all),
  }
}

/**
 * One recipient of the policy file, normalised like those of requests; undefined when it is none. A number may be
 * one that is not in use.
 */
export function readTestRecipient(
  text: string,
  defaultCountry?: string,
): { channel: Channel; to: string } | undefined {
  const isAddress = text.includes('@')
  const to = isAddress ? readEmailAddress(text) : createPhoneReader(defaultCountry)(text)?.to
  return to === undefined ? undefined : { channel: isAddress ? 'email' : 'sms', to }
}
