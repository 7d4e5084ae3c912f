import { randomUUID } from 'node:crypto'
import { isObject, parseObject } from '../../base/json.ts'
import { beijingDay } from '../beijing-time.ts'
import { createHttpProvider } from '../http-provider.ts'
import type { Message, Provider, SendResult, SentMessage } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted } from '../send-result.ts'
import { findVendorTemplate } from '../vendor-templates.ts'
import { resultOfCode } from './errors.ts'
import { createReceiptReader } from './receipts.ts'
import { type AliyunSettings, aliyunSettings } from './settings.ts'
import { signAcs3 } from './signature.ts'

/**
 * SMS by Alibaba Cloud: Dysmsapi of 2017-05-25, SendSms with an approved template and sign name. The notice id is sent as
 * OutId; receipts and queries return it. The API does not detect repeats.
 */
export const aliyun: ProviderKind<AliyunSettings> = {
  kind: 'aliyun',
  channels: ['sms'],
  settings: aliyunSettings,
  create: createAliyun,
  createReceiptReader,
}

/** A younger message may be missing from the records of a query although it was accepted. */
const recordDelayMs = 60_000

function createAliyun(name: string, settings: AliyunSettings, deps: ProviderDeps): Provider {
  const { ask, providerWith } = createHttpProvider(aliyun, name, deps)
  const { clock } = deps
  const { origin, host } = new URL(settings.endpoint)

  /** The object of the answer, or a result if there is none. */
  async function call(action: string, query: Record<string, string>, signal: AbortSignal) {
    const method = 'POST'
    const atMs = clock()
    const request = { method, host, query, action, version: '2017-05-25', atMs } as const
    const signed = signAcs3({ ...request, nonce: randomUUID() }, settings)
    const url = `${origin}/?${signed.query}`
    const { headers } = signed
    const { result, answer } = await ask({ method, url, headers, body: '' }, signal)
    return result ? { result } : { answer: parseObject(answer.body) }
  }

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const found = findVendorTemplate(settings.templates, message)
    if (!found) return { kind: 'rejected', detail: 'aliyun: no template id for this template' }
    const chosen = typeof found === 'string' ? { id: found } : found
    const query = {
      PhoneNumbers: vendorNumber(message.to),
      SignName: chosen.signName ?? settings.signName,
      TemplateCode: chosen.id,
      TemplateParam: JSON.stringify(paramsOf(chosen.params, message)),
      OutId: message.noticeId,
    }
    const { result, answer } = await call('SendSms', query, signal)
    if (result) return result
    if (answer?.Code !== 'OK') return resultOfCode(answer?.Code, answer?.Message)
    return accepted(answer.BizId)
  }

  async function query(sent: SentMessage, signal: AbortSignal): Promise<SendResult> {
    const { answer } = await call(
      'QuerySendDetails',
      {
        PhoneNumber: vendorNumber(sent.to),
        SendDate: beijingDay(sent.sentAt),
        PageSize: '50',
        CurrentPage: '1',
      },
      signal,
    )
    if (answer?.Code !== 'OK')
      return { kind: 'unknown', detail: 'aliyun: no outcome in the answer' }
    const records = isObject(answer.SmsSendDetailDTOs)
      ? answer.SmsSendDetailDTOs.SmsSendDetailDTO
      : undefined
    if (!Array.isArray(records))
      return { kind: 'unknown', detail: 'aliyun: no outcome in the answer' }
    const isTaken = records.some((record) => isObject(record) && record.OutId === sent.noticeId)
    if (isTaken) return accepted()
    return clock() - sent.sentAt > recordDelayMs
      ? { kind: 'unavailable', detail: 'aliyun: not in the records' }
      : { kind: 'unknown', detail: 'aliyun: not in the records yet' }
  }

  return providerWith({ send, query })
}

/** Eleven digits inside mainland China, country code and number without `+` elsewhere. */
function vendorNumber(to: string): string {
  return to.replace(/^\+86(?=1\d{10}$)/, '').replace(/^\+/, '')
}

function paramsOf(params: Readonly<Record<string, string>> | undefined, { variables }: Message) {
  if (!params) return variables
  const entries = Object.entries(params)
  return Object.fromEntries(entries.map(([theirs, ours]) => [theirs, variables[ours] ?? '']))
}
