/** Builds the sends of captchas and notices, from a request to a row and a job. */
import { createSendCaptcha } from '../captcha/send.ts'
import { findRoute, type RoutedMessage } from '../delivery/provider-order.ts'
import { createNoticeCreator } from '../notice/create.ts'
import { createIdempotency } from '../notice/idempotency.ts'
import { createReadMessage } from '../notice/message.ts'
import { createOncePerKey } from '../notice/once-per-key.ts'
import { createSendNotice } from '../notice/send.ts'
import { openCanReach } from '../recipient/mail-domains.ts'
import type { Requests } from './requests.ts'
import type { Shared } from './shared.ts'

export function composeSending(shared: Shared, requests: Requests) {
  const { closers, log, metrics, secrets } = shared
  const { file, templates } = shared.config
  const { database } = shared.servers
  const { notices, codes, producer } = shared.stores
  const { isTestRecipient, normaliseRecipient, quota } = requests
  const { nowMs } = database
  const idempotency = createIdempotency(database)
  closers.onClose(() => idempotency.close())
  const creator = createNoticeCreator({
    ...{ store: notices, producer, metrics, log, isTestRecipient, nowMs },
    hashRecipient: (channel, to) => secrets.recipientHashes(channel, to)[0] as Buffer,
    seal: secrets.seal,
  })
  closers.onClose(() => creator.close())
  const reach = openCanReach(file.recipients.mail, isTestRecipient)
  closers.onClose(() => reach.close())
  const sending = {
    readMessage: createReadMessage({
      normaliseRecipient,
      templates,
      isRouted: (message: RoutedMessage) => findRoute(file.routes, message) !== undefined,
      isTestRecipient,
    }),
    oncePerKey: createOncePerKey(idempotency),
    quota,
    createNotice: creator.createNotice,
    store: notices,
    canReach: reach.canReach,
    nowMs,
  }
  return {
    sendCaptcha: createSendCaptcha({
      ...sending,
      challenges: requests.challenges,
      guessLimits: requests.guessLimits,
      codes,
      code: { ...file.code, ttlMs: file.code.ttl },
      testRecipients: requests.testRecipients,
    }),
    sendNotice: createSendNotice({ ...sending, ttlMs: file.notice.ttl }),
  }
}
