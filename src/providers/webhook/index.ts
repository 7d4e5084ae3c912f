import { channels } from '../../base/channel.ts'
import { parseObject } from '../../base/json.ts'
import { traceHeaders } from '../../base/traces.ts'
import { signWebhook } from '../../crypto/standard-webhooks.ts'
import { createHttpProvider, type HttpAnswer } from '../http-provider.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { secondsLeft } from '../seconds-left.ts'
import { accepted } from '../send-result.ts'
import { postponedBy, resultOfStatus } from './errors.ts'
import { createReceiptReader } from './receipts.ts'
import { type WebhookSettings, webhookSettings } from './settings.ts'

/**
 * Connects carriers for which Postern has no kind: it sends a signed POST to a small service of the operator, which calls
 * the carrier. Receipts are signed in the same way (src/crypto/standard-webhooks.ts).
 */
export const webhook: ProviderKind<WebhookSettings> = {
  kind: 'webhook',
  channels,
  settings: webhookSettings,
  create: createWebhook,
  createReceiptReader,
}

function createWebhook(name: string, settings: WebhookSettings, deps: ProviderDeps): Provider {
  const { ask, providerWith } = createHttpProvider(webhook, name, deps)

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const { noticeId, channel, to, template, locale, subject, text, html } = message
    const { listUnsubscribe } = message
    const validForSeconds = secondsLeft(message, Number.POSITIVE_INFINITY)
    const body = JSON.stringify({
      ...{ noticeId, channel, to, template, locale, subject, text, html },
      listUnsubscribe,
      validForSeconds,
    })
    const headers = {
      'content-type': 'application/json',
      ...signWebhook(settings.secret, noticeId, deps.clock(), body),
      ...traceHeaders(),
    }
    const call = { method: 'POST', url: settings.url, headers, body } as const
    const postponed = (answer: HttpAnswer) => postponedBy(answer, deps.clock())
    const { result, answer } = await ask(call, signal, postponed)
    if (result) return result
    const isTaken = answer.status >= 200 && answer.status < 300
    return isTaken ? accepted(parseObject(answer.body)?.id) : resultOfStatus(answer.status)
  }

  return providerWith({ send })
}
