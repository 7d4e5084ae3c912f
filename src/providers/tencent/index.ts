import { z } from 'zod'
import { createHttpClient } from '../http.ts'
import { isObject, parseObject } from '../json.ts'
import type { ProviderDeps, ProviderKind } from '../kind.ts'
import type { Message, Provider, SendResult, SentMessage } from '../provider.ts'
import { resultOfTransport } from '../result.ts'
import { findVendorTemplate, vendorTemplates } from '../vendor-templates.ts'
import { resultOfCode } from './errors.ts'
import { parseReceipts } from './receipts.ts'
import { signTc3 } from './sign.ts'

/**
 * SMS by Tencent Cloud: version 2021-01-11, SendSms with an approved template and sign name. The
 * notice id travels as SessionContext, which queries hand back; receipts carry only the SerialNo.
 */
const template = z.union([
  /** A text without variables. */
  z.string().min(1),
  z.strictObject({
    id: z.string().min(1),
    /** Our variables in the order of their {1}, {2}, … */
    params: z.array(z.string().min(1)).default([]),
    signName: z.string().min(1).optional(),
  }),
])

const settings = z.strictObject({
  secretId: z.string().min(1),
  secretKey: z.string().min(1),
  sdkAppId: z.string().min(1),
  /** Needed inside mainland China. */
  signName: z.string().min(1).optional(),
  /** Outside mainland China, where one was registered. */
  senderId: z.string().min(1).optional(),
  region: z.string().min(1).default('ap-guangzhou'),
  templates: vendorTemplates(template),
  /** Must stand as `?token=` in the receipt address given to Tencent; without it none are taken. */
  receiptToken: z.string().min(16).optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://sms.tencentcloudapi.com'),
})

export type TencentSettings = z.infer<typeof settings>

export const tencent: ProviderKind<TencentSettings> = {
  kind: 'tencent',
  channels: ['sms'],
  settings,
  create: createTencent,
  parseReceipts,
}

const contentType = 'application/json; charset=utf-8'

function createTencent(name: string, settings: TencentSettings, deps: ProviderDeps): Provider {
  const client = createHttpClient(deps.timeoutMs)
  const { clock } = deps
  const { origin, host } = new URL(settings.endpoint)

  /** The `Response` object, or the result when there is none to read. */
  async function call(action: string, parameters: object, signal: AbortSignal) {
    const atMs = clock()
    const body = JSON.stringify(parameters)
    const headers = {
      'content-type': contentType,
      host,
      'x-tc-action': action,
      'x-tc-version': '2021-01-11',
      'x-tc-region': settings.region,
      'x-tc-timestamp': String(Math.floor(atMs / 1_000)),
      authorization: signTc3({ host, service: 'sms', action, body, atMs, contentType }, settings),
    }
    const outcome = await client.call({ method: 'POST', url: `${origin}/`, headers, body }, signal)
    const result = resultOfTransport(outcome, 'tencent', clock())
    if (result) return { result }
    const answer = outcome.kind === 'answered' ? parseObject(outcome.body)?.Response : undefined
    if (!isObject(answer)) return { result: resultOfCode(undefined) }
    if (isObject(answer.Error)) return { result: resultOfCode(answer.Error.Code) }
    return { answer }
  }

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const found = findVendorTemplate(settings.templates, message)
    if (!found) return { kind: 'rejected', detail: 'tencent: no template id for this template' }
    const chosen = typeof found === 'string' ? { id: found, params: [] } : found
    const { result, answer } = await call(
      'SendSms',
      {
        PhoneNumberSet: [message.to],
        SmsSdkAppId: settings.sdkAppId,
        SignName: chosen.signName ?? settings.signName,
        SenderId: settings.senderId,
        TemplateId: chosen.id,
        TemplateParamSet: chosen.params.map((ours) => message.variables[ours] ?? ''),
        SessionContext: message.noticeId,
      },
      signal,
    )
    if (result) return result
    const status = Array.isArray(answer.SendStatusSet) ? answer.SendStatusSet[0] : undefined
    if (!isObject(status) || status.Code !== 'Ok') {
      return resultOfCode(isObject(status) ? status.Code : undefined)
    }
    return typeof status.SerialNo === 'string' && status.SerialNo !== ''
      ? { kind: 'accepted', messageId: status.SerialNo }
      : { kind: 'accepted' }
  }

  /** Lists only messages whose fate is known, so a missing one proves nothing. */
  async function query(sent: SentMessage, signal: AbortSignal): Promise<SendResult> {
    const { answer } = await call(
      'PullSmsSendStatusByPhoneNumber',
      {
        BeginTime: Math.floor(sent.sentAt / 1_000) - 60,
        Offset: 0,
        Limit: 100,
        PhoneNumber: sent.to,
        SmsSdkAppId: settings.sdkAppId,
      },
      signal,
    )
    const records = answer?.PullSmsSendStatusSet
    const record = (Array.isArray(records) ? records : []).find(
      (each) => isObject(each) && each.SessionContext === sent.noticeId,
    )
    if (!record) return { kind: 'unknown', detail: 'tencent: not told' }
    return typeof record.SerialNo === 'string'
      ? { kind: 'accepted', messageId: record.SerialNo }
      : { kind: 'accepted' }
  }

  return {
    name,
    kind: tencent.kind,
    channels: tencent.channels,
    send,
    query,
    async close() {
      client.close()
    },
  }
}
