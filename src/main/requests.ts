/** The steps of every send and check: recipients, limits, challenges, and the records for support. */
import { createChallengeKind, createChallenges } from '../captcha/challenges.ts'
import { createRecipientNormaliser } from '../recipient/normalise-recipient.ts'
import { createRefusals } from '../recipient/refusals.ts'
import { createTestRecipients, warnOfTestRecipients } from '../recipient/test-recipients.ts'
import { createGuessLimits } from '../rules/guess-limits.ts'
import { createPriceOf } from '../rules/price-of.ts'
import { createQuota, type OnDecided } from '../rules/quota.ts'
import { createRecorder } from '../support/recorder.ts'
import type { Shared } from './shared.ts'

export type Requests = ReturnType<typeof composeRequests>

/** `onDecided` is called with every decision of the limits. */
export function composeRequests(shared: Shared, onDecided?: OnDecided) {
  const { closers, log, metrics, secrets, config } = shared
  const { redis, keyPrefix } = shared.servers
  const { nowMs } = shared.servers.database
  const { limiter, policies, prices, onReload } = shared.limits
  const { recipients, testing, code } = config.file
  const testRecipients = createTestRecipients(testing, {
    defaultCountry: recipients.defaultCountry,
    nowMs,
  })
  const { isTestRecipient } = testRecipients
  const { isRefused, replace } = createRefusals(recipients.refuse)
  onReload((next) => replace(next.recipients.refuse))
  warnOfTestRecipients(testRecipients.list(), testing.until, log)
  const recorder = createRecorder({
    ...{ redis, secrets, keyPrefix, policies },
    codeTtlMs: code.ttl,
    onDropped: (record, lines) => metrics.recordsDropped.inc({ record }, lines),
  })
  closers.onClose(() => recorder.close())
  const quota = createQuota({
    limiter,
    dedupeHash: secrets.dedupeHash,
    // A reload changes prices together with the rules that count them.
    priceOf: (channel, country) => createPriceOf(prices())(channel, country),
    isTestRecipient,
    onDecided(decided) {
      recorder.decided(decided)
      onDecided?.(decided)
    },
    onReleased: recorder.released,
  })
  closers.onClose(() => quota.close())
  const challenges = createChallenges({
    ...{ redis, keyPrefix, metrics },
    kind: createChallengeKind(config.file.challenge, { secrets, nowMs }),
  })
  closers.onClose(() => challenges.close())
  return {
    testRecipients,
    isTestRecipient,
    normaliseRecipient: createRecipientNormaliser(recipients, isTestRecipient, isRefused),
    recorder,
    quota,
    guessLimits: createGuessLimits({ quota, limiter, policies }),
    challenges,
  }
}
