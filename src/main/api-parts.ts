/** Parts of the API role that are put together of several rooms, or only where the policy file asks for them. */

import { createAltcha } from '../access/altcha.ts'
import { createChallenges } from '../access/challenges.ts'
import { createSiteverify } from '../access/siteverify.ts'
import type { Closers } from '../base/closers.ts'
import type { Log } from '../base/log.ts'
import type { ReceiptReader } from '../base/receipt.ts'
import type { PolicyFile } from '../config/policy-schema.ts'
import { createReceiptReader } from '../providers/kinds.ts'
import { type CanReach, createCanReach } from '../recipient/can-reach.ts'
import { createMailDomains } from '../recipient/mail-domains.ts'
import { maskRecipient } from '../recipient/mask-recipient.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import { declaringPolicies } from '../rules/policies.ts'
import type { Quota } from '../rules/quota.ts'
import { createLookUp } from '../support/look-up.ts'
import { createOperations } from '../support/operations.ts'
import { createFindRecorded } from '../support/recorded.ts'
import { createReset } from '../support/reset.ts'
import type { Config } from './load-config.ts'
import type { Shared } from './shared.ts'

/** How callers from pages are asked. */
export function openChallenges({ config, servers, secrets, metrics, closers }: Shared) {
  const { database, redis, keyPrefix } = servers
  const settings = config.file.challenge
  const kind =
    settings.kind === 'altcha'
      ? createAltcha({ secrets, tries: settings.tries, nowMs: database.nowMs })
      : createSiteverify(settings)
  const challenges = createChallenges({ kind, redis, keyPrefix, metrics })
  closers.onClose(() => challenges.close())
  return challenges
}

/** What support asks of a recipient, and what it may take back. */
export function createSupport(shared: Shared, quota: Quota) {
  const { notices: store, codes } = shared.stores
  const { limiter, policies } = shared.limits
  const { secrets, servers } = shared
  const { redis, keyPrefix } = servers
  const codeTtlMs = shared.config.file.code.ttl
  const findRecorded = createFindRecorded({ redis, secrets, keyPrefix, codeTtlMs })
  const operations = createOperations(servers.database)
  const asked = {
    store,
    operations,
    findRecorded,
    codes,
    limiter,
    quota,
    secrets,
    policyNames: declaringPolicies,
    policies,
  }
  const { lookUp, findKnown } = createLookUp(asked)
  const reset = createReset({ operations, codes, limiter, secrets, findKnown })
  return { lookUp, reset, operations, findRecorded }
}

/** Whoever reads their codes in the policy file passes as one of them. */
export function warnOfTestRecipients(
  { list }: TestRecipients,
  until: string | undefined,
  log: Log,
): void {
  const recipients = list().map(({ channel, to }) => maskRecipient(channel, to))
  if (recipients.length === 0) return
  const shown = recipients.slice(0, maxShown)
  log.testRecipients({ count: recipients.length, recipients: shown, until: until ?? 'for ever' })
}

const maxShown = 20

/** Everybody can be reached where no domain is looked up. */
export function openCanReach(
  { recipients }: PolicyFile,
  testRecipients: TestRecipients,
  closers: Closers,
): CanReach {
  if (!recipients.mail.checkMx) return async () => true
  const domains = createMailDomains()
  closers.onClose(() => domains.close())
  return createCanReach(domains, testRecipients)
}

/** How each provider's receipts are read, for those that come over HTTP. */
export function receiptReaders({ providers }: Config): Map<string, ReceiptReader> {
  const readers = new Map<string, ReceiptReader>()
  for (const [name, setUp] of providers) {
    const reader = createReceiptReader(name, setUp)
    if (reader) readers.set(name, reader)
  }
  return readers
}

/** For what needs PostgreSQL at start: resolves after the first try, because the process is up before its servers are. */
export function keepTrying(closers: Closers, log: Log, work: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  closers.onClose(() => {
    isClosed = true
    clearTimeout(timer)
  })
  const attempt = async () => {
    try {
      await work()
    } catch (error) {
      // A try that was under way at the close must not begin anew.
      if (isClosed) return
      log.backgroundFailed('bootstrap key', error)
      timer = setTimeout(attempt, 1_000)
    }
  }
  return attempt()
}
