/** Builds what answers requests, for the router of the API and for the console. */
import { createApiKeys } from '../access/api-keys.ts'
import { createBootstrap } from '../access/bootstrap.ts'
import { createCancelCaptcha, createFindCaptcha } from '../captcha/cancel.ts'
import { createCaptchaEvents, type EndCode } from '../captcha/captcha-events.ts'
import { createChallengeKind, createChallenges } from '../captcha/challenges.ts'
import { createCheckCaptcha } from '../captcha/check.ts'
import { createKnownBrowsers, type KnownBrowsers } from '../captcha/known-browsers.ts'
import { createPasses } from '../captcha/passes.ts'
import { createSendCaptcha } from '../captcha/send.ts'
import { createSendWay } from '../captcha/send-way.ts'
import { createWorkflows } from '../captcha/workflows.ts'
import { type RoutedMessage, servingProviders } from '../delivery/provider-order.ts'
import { createNoticeCreator } from '../notice/create.ts'
import { createIdempotency } from '../notice/idempotency.ts'
import { createReadMessage } from '../notice/message.ts'
import { createOncePerKey } from '../notice/once-per-key.ts'
import { createPipeline } from '../notice/pipeline.ts'
import { createSendNotice } from '../notice/send.ts'
import { createServes } from '../providers/kinds.ts'
import { openCanReach } from '../recipient/mail-domains.ts'
import { createRecipientNormaliser } from '../recipient/normalise-recipient.ts'
import { createTestRecipients, warnOfTestRecipients } from '../recipient/test-recipients.ts'
import { createGuessLimits } from '../rules/guess-limits.ts'
import { priceOf } from '../rules/price-of.ts'
import { createQuota, type OnDecided } from '../rules/quota.ts'
import { createDecisionLog } from '../support/decision-log.ts'
import { createOperations } from '../support/operations.ts'
import { createRecorder } from '../support/recorder.ts'
import { createSupport } from '../support/support.ts'
import type { Shared } from './shared.ts'

export type Requests = Awaited<ReturnType<typeof composeRequests>>

/** `onDecided` is called with every decision of the limits. */
export async function composeRequests(shared: Shared, onDecided?: OnDecided) {
  const sends = await composeSends(shared, onDecided)
  return {
    ...sends,
    ...(await composeChecking(shared, sends)),
    ...composeSupport(shared, sends),
    keys: await openKeys(shared),
  }
}

/** The sends. Workers begin ways of verifications with them. */
export async function composeSends(shared: Shared, onDecided?: OnDecided) {
  const { redis, keyPrefix } = shared.servers
  const known = await createKnownBrowsers({ redis, keyPrefix, secrets: shared.secrets })
  const steps = { ...composeSteps(shared, onDecided), known }
  return { ...steps, ...composeSending(shared, steps) }
}

type Steps = ReturnType<typeof composeSteps> & { known: KnownBrowsers }
type Sends = Awaited<ReturnType<typeof composeSends>>

/** The steps of every send and check: recipients, limits, challenges, and the records for support. */
function composeSteps(shared: Shared, onDecided?: OnDecided) {
  const { closers, log, metrics, secrets, config } = shared
  const { redis, keyPrefix } = shared.servers
  const { nowMs } = shared.servers.database
  const { limiter, policies, prices, file } = shared.limits
  const { recipients, testing } = config.file
  const testRecipients = createTestRecipients(testing, {
    defaultCountry: recipients.defaultCountry,
    nowMs,
  })
  const { isTestRecipient } = testRecipients
  const isRefused = (mailbox: string) => file().recipients.refuse.has(mailbox)
  warnOfTestRecipients(testRecipients.list(), testing.until, log)
  const decisions = createDecisionLog(shared.servers.database, secrets)
  const recorder = createRecorder({
    ...{ log: decisions, secrets, policies },
    onDropped: (record, count) => metrics.recordsDropped.inc({ record }, count),
    onFailed: (error) => log.backgroundFailed('decisions', error),
  })
  closers.onClose(() => recorder.close())
  const quota = createQuota({
    limiter,
    dedupeHash: secrets.dedupeHash,
    // A reload changes prices together with the rules that count them.
    priceOf: (channel, country) => priceOf(prices(), channel, country),
    ...{ isTestRecipient, policies },
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
    decisions,
    recorder,
    quota,
    guessLimits: createGuessLimits({ quota, limiter, policies }),
    challenges,
  }
}

/** The sends of captchas and notices, from a request to a row and a job. */
function composeSending(shared: Shared, steps: Steps) {
  const { closers, log, metrics, secrets } = shared
  const { file, templates, providers } = shared.config
  const serves = createServes(providers)
  const { isEnabled } = shared.limits
  const { database } = shared.servers
  const { notices, codes, producer } = shared.stores
  const { isTestRecipient, normaliseRecipient, quota } = steps
  const { nowMs } = database
  const idempotency = createIdempotency(database)
  closers.onClose(() => idempotency.close())
  const creator = createNoticeCreator({
    ...{ store: notices, producer, metrics, log, isTestRecipient, nowMs },
    hashesOf: secrets.recipientHashes,
    seal: secrets.seal,
  })
  closers.onClose(() => creator.close())
  const reach = openCanReach(file.recipients.mail, isTestRecipient)
  closers.onClose(() => reach.close())
  const oncePerKey = createOncePerKey(idempotency)
  const sending = {
    readMessage: createReadMessage({
      normaliseRecipient,
      templates,
      links: file.links,
      providersOf: (message: RoutedMessage) =>
        servingProviders(file.routes, message, serves, isEnabled),
      isTestRecipient,
    }),
    ...{ oncePerKey, quota },
    ...createPipeline({
      ...{ oncePerKey, quota, store: notices, nowMs },
      createNotice: creator.createNotice,
      canReach: reach.canReach,
    }),
  }
  const { challenges, guessLimits, known, testRecipients } = steps
  const code = { ...file.code, ttlMs: file.code.ttl }
  const ofCodes = {
    ...{ ...sending, challenges, guessLimits, known, codes, code, testRecipients },
    links: file.links,
  }
  return {
    sendCaptcha: createSendCaptcha(ofCodes),
    workflows: createWorkflows({
      ...ofCodes,
      ...{ normaliseRecipient, store: notices, unseal: secrets.unseal, nowMs },
      workflows: file.workflows,
      ways: createSendWay({ ...ofCodes, store: notices, seal: secrets.seal }),
    }),
    sendNotice: createSendNotice({ ...sending, ttlMs: file.notice.ttl, nowMs }),
  }
}

/** The check of typed codes, and the passes of right codes. */
async function composeChecking(shared: Shared, steps: Sends) {
  const { closers, metrics, secrets } = shared
  const { database, redis, keyPrefix } = shared.servers
  const { events, wantedEvents, codes, notices } = shared.stores
  const { normaliseRecipient, testRecipients, challenges, guessLimits, recorder } = steps
  const { nowMs } = database
  const passes = await createPasses({ redis, keyPrefix, secrets, nowMs })
  closers.onClose(() => passes.close())
  const endCode: EndCode = async ({ channel, to }, { noticeId: id, codeId }, end) => {
    if (id) await notices.endCode({ id, end, hashes: secrets.recipientHashes(channel, to) })
    if (codeId) await notices.endVerification(codeId, end)
  }
  const captchaEvents = createCaptchaEvents({
    types: wantedEvents,
    write: events.add,
    ...{ endCode, nowMs },
  })
  closers.onClose(() => captchaEvents.close())
  const findCaptcha = createFindCaptcha({ ...steps, store: notices, codes })
  const checkCaptcha = createCheckCaptcha({
    ...{ normaliseRecipient, testRecipients, challenges, codes, findCaptcha },
    limits: guessLimits,
    code: shared.config.file.code,
    known: steps.known,
    passes,
    metrics,
    nowMs,
    events: captchaEvents,
    onChecked: recorder.checked,
  })
  const cancelCaptcha = createCancelCaptcha({
    ...{ findCaptcha, codes, endCode, testRecipients },
    limits: guessLimits,
    events: captchaEvents,
  })
  return { checkCaptcha, cancelCaptcha, passes }
}

/** The look-up and reset of a recipient. */
function composeSupport(shared: Shared, { quota, decisions, known }: Steps) {
  const { notices: store, codes } = shared.stores
  const { limiter, policies } = shared.limits
  const { secrets } = shared
  const operations = createOperations(shared.servers.database)
  const { suppressions } = shared.stores
  const support = createSupport({
    ...{ store, operations, suppressions, decisions, codes, known, limiter, quota, secrets },
    policies,
  })
  return { ...support, operations }
}

async function openKeys({ config, servers, closers, log }: Shared) {
  const keys = createApiKeys(servers.database)
  const bootstrapKey = config.environment.BOOTSTRAP_SECRET_KEY
  if (bootstrapKey) {
    const bootstrap = createBootstrap(keys.ensure, log)
    closers.onClose(bootstrap.close)
    await bootstrap.ensure(bootstrapKey)
  }
  return keys
}
