import { textFor } from '../../base/by-country.ts'
import { isObject, parseObject } from '../../base/json.ts'
import { createHttpProvider } from '../http-provider.ts'
import type { Message, Provider, SendResult, SentMessage } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted } from '../send-result.ts'
import { hasSenderFor, noSender } from '../sender.ts'
import { findVendorTemplate } from '../vendor-templates.ts'
import { resultOfCode } from './errors.ts'
import { createReceiptReader } from './receipts.ts'
import { type TencentSettings, tencentSettings } from './settings.ts'
import { signTc3 } from './signature.ts'

/**
 * SMS by Tencent Cloud: version 2021-01-11, SendSms with an approved template and sign name. The notice id is sent as
 * SessionContext, which queries return. Receipts contain only the SerialNo.
 */
export const tencent: ProviderKind<TencentSettings> = {
  kind: 'tencent',
  channels: ['sms'],
  settings: tencentSettings,
  serves: ({ signName }, country) => hasSenderFor(signName, country),
  create: createTencent,
  createReceiptReader,
}

/** Tencent refuses calls of a clock that differs by more. */
const maxClockErrorSeconds = 300

const contentType = 'application/json; charset=utf-8'

function createTencent(name: string, settings: TencentSettings, deps: ProviderDeps): Provider {
  const { ask, notUnderstood, providerWith } = createHttpProvider(tencent, name, deps)
  const { origin, host } = new URL(settings.endpoint)

  /** The `Response` object, or a result if there is none. */
  async function call(action: string, parameters: object, signal: AbortSignal) {
    const atMs = deps.clock()
    const body = JSON.stringify(parameters)
    // Values are signed in lower case.
    const signed = { 'content-type': contentType, host, 'x-tc-action': action.toLowerCase() }
    const headers = {
      ...signed,
      'x-tc-action': action,
      'x-tc-version': '2021-01-11',
      'x-tc-region': settings.region,
      'x-tc-timestamp': String(Math.floor(atMs / 1_000)),
      authorization: signTc3({ service: 'sms', headers: signed, body, atMs }, settings),
    }
    const call = { method: 'POST', url: `${origin}/`, headers, body } as const
    const { result, answer } = await ask(call, signal)
    if (result) return { result }
    const response = parseObject(answer.body)?.Response
    if (!isObject(response)) return { result: notUnderstood(answer) }
    if (!isObject(response.Error)) return { answer: response, http: answer }
    return { result: resultOfCode(response.Error.Code) ?? notUnderstood(answer) }
  }

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const { country = '' } = message
    if (!hasSenderFor(settings.signName, country)) return noSender('tencent')
    const sign = settings.signName && textFor(settings.signName, country)
    const found = findVendorTemplate(settings.templates, message)
    if (!found) return { kind: 'rejected', detail: 'tencent: no template id for this template' }
    const chosen = typeof found === 'string' ? { id: found, params: [] } : found
    const { result, answer, http } = await call(
      'SendSms',
      {
        PhoneNumberSet: [message.to],
        SmsSdkAppId: settings.sdkAppId,
        SignName: chosen.signName ?? sign,
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
      return resultOfCode(isObject(status) ? status.Code : undefined) ?? notUnderstood(http)
    }
    return accepted(status.SerialNo)
  }

  /** The list has only messages with a known outcome, so a missing message proves nothing. */
  async function query(sent: SentMessage, signal: AbortSignal): Promise<SendResult> {
    const { answer } = await call(
      'PullSmsSendStatusByPhoneNumber',
      {
        BeginTime: Math.floor(sent.sentAt / 1_000) - maxClockErrorSeconds,
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
    if (!record) return { kind: 'unknown', detail: 'tencent: no outcome in the answer' }
    return accepted(record.SerialNo)
  }

  return providerWith({ send, query })
}
