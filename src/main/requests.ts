/** Builds what answers requests, for the router of the API and for the console. */
import { createApiKeys } from '../access/api-keys.ts'
import { ensureBootstrapKey } from '../access/bootstrap.ts'
import { createCancelCaptcha, createFindCaptcha } from '../captcha/cancel.ts'
import { createCaptchaEvents, type EndCode } from '../captcha/captcha-events.ts'
import { createChallengeKind, createChallenges } from '../captcha/challenges.ts'
import { createCheckCaptcha } from '../captcha/check.ts'
import { createKnownBrowsers } from '../captcha/known-browsers.ts'
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
  const steps = await composeSteps(shared, onDecided)
  return { ...steps, ...composeSending(shared, steps) }
}

type Steps = Awaited<ReturnType<typeof composeSteps>>
type Sends = Awaited<ReturnType<typeof composeSends>>

/** The steps of every send and check: recipients, limits, challenges, and the records for support. */
async function composeSteps(shared: Shared, onDecided?: OnDecided) {
  const { closers, log, metrics, secrets, servers, limits } = shared
  const { recipients, testing, challenge } = shared.config.file
  const { policies, limiter } = limits
  const { nowMs } = servers.database
  const testRecipients = createTestRecipients(testing, { ...recipients, nowMs })
  const { isTestRecipient } = testRecipients
  warnOfTestRecipients(testRecipients.list(), testing.until, log)
  const isRefused = (mailbox: string) => limits.file().recipients.refuse.has(mailbox)
  const decisions = createDecisionLog(servers.database, secrets)
  const recorder = createRecorder({
    ...{ log: decisions, secrets, policies },
    onDropped: (record, count) => metrics.recordsDropped.inc({ record }, count),
    onFailed: (error) => log.backgroundFailed('decisions', error),
  })
  closers.onClose(() => recorder.close())
  const quota = createQuota({
    ...{ ...limits, isTestRecipient, dedupeHash: secrets.dedupeHash },
    onDecided(decided) {
      recorder.decided(decided)
      onDecided?.(decided)
    },
    onReleased: recorder.released,
  })
  closers.onClose(() => quota.close())
  const challenges = createChallenges({
    ...{ ...servers, metrics },
    kind: createChallengeKind(challenge, { secrets, nowMs }),
  })
  closers.onClose(() => challenges.close())
  return {
    ...{ testRecipients, isTestRecipient, decisions, recorder, quota, challenges },
    normaliseRecipient: createRecipientNormaliser(recipients, isTestRecipient, isRefused),
    guessLimits: createGuessLimits({ quota, limiter, policies }),
    known: await createKnownBrowsers({ ...servers, secrets }),
  }
}

/** The sends of captchas and notices, from a request to a row and a job. */
function composeSending(shared: Shared, steps: Steps) {
  const { closers, log, metrics, secrets } = shared
  const { file, templates, providers } = shared.config
  const { database } = shared.servers
  const { notices: store, codes, producer } = shared.stores
  const { seal, unseal, recipientHashes: hashesOf } = secrets
  const { nowMs } = database
  const { links, code } = file
  const serves = createServes(providers)
  const idempotency = createIdempotency(database)
  closers.onClose(() => idempotency.close())
  const { isTestRecipient } = steps
  const creator = createNoticeCreator({
    ...{ store, producer, hashesOf, seal, metrics, log, isTestRecipient, nowMs },
  })
  closers.onClose(() => creator.close())
  const reach = openCanReach(file.recipients.mail, isTestRecipient)
  closers.onClose(() => reach.close())
  const sending = {
    ...{ ...steps, oncePerKey: createOncePerKey(idempotency), store, nowMs, codes, links },
    ...{ seal, unseal, code: { ...code, ttlMs: code.ttl } },
    readMessage: createReadMessage({
      ...{ ...steps, templates, links },
      providersOf: (message: RoutedMessage) =>
        servingProviders(file.routes, message, serves, shared.limits.isEnabled),
    }),
  }
  const { createNotice } = creator
  const pipeline = createPipeline({ ...sending, createNotice, canReach: reach.canReach })
  const all = { ...sending, ...pipeline }
  return {
    sendCaptcha: createSendCaptcha(all),
    sendNotice: createSendNotice({ ...all, ttlMs: file.notice.ttl }),
    workflows: createWorkflows({ ...all, workflows: file.workflows, ways: createSendWay(all) }),
  }
}

/** The check of typed codes, and the passes of right codes. */
async function composeChecking(shared: Shared, sends: Sends) {
  const { closers, metrics, secrets, servers } = shared
  const { events, wantedEvents, codes, notices: store } = shared.stores
  const { nowMs } = servers.database
  const passes = await createPasses({ ...servers, secrets, nowMs })
  closers.onClose(() => passes.close())
  const endCode: EndCode = async ({ channel, to }, { noticeId: id, codeId }, end) => {
    if (id) await store.endCode({ id, end, hashes: secrets.recipientHashes(channel, to) })
    if (codeId) await store.endVerification(codeId, end)
  }
  const captchaEvents = createCaptchaEvents({
    ...{ endCode, types: wantedEvents, write: events.add, nowMs },
  })
  closers.onClose(() => captchaEvents.close())
  const findCaptcha = createFindCaptcha({ ...sends, store, codes })
  const checking = {
    ...{ ...sends, endCode, findCaptcha, codes, passes, metrics, nowMs, events: captchaEvents },
    limits: sends.guessLimits,
  }
  const { code } = shared.config.file
  const onChecked = sends.recorder.checked
  return {
    passes,
    checkCaptcha: createCheckCaptcha({ ...checking, code, onChecked }),
    cancelCaptcha: createCancelCaptcha(checking),
  }
}

/** The look-up and reset of a recipient. */
function composeSupport({ servers, stores, secrets, limits }: Shared, steps: Steps) {
  const operations = createOperations(servers.database)
  const { notices: store, codes, suppressions } = stores
  const rows = { store, codes, suppressions, operations }
  return { ...createSupport({ ...steps, ...limits, ...rows, secrets }), operations }
}

async function openKeys({ config, servers, closers, log }: Shared) {
  const keys = createApiKeys(servers.database)
  const { BOOTSTRAP_SECRET_KEY: token } = config.environment
  if (token) closers.onClose(await ensureBootstrapKey(token, keys.ensure, log))
  return keys
}
