import { z } from 'zod'
import { isObject, objectsIn, parseObject } from '../../base/json.ts'
import type { Receipt } from '../../base/receipt.ts'
import { parseBeijingTime } from '../beijing-time.ts'
import { defineHttpKind, type Http } from '../http-provider.ts'
import type { Message, SendResult, SentMessage } from '../provider.ts'
import { defineReportReader } from '../receipt-readers.ts'
import { accepted, isCode } from '../send-result.ts'
import { senderByCountry } from '../sender.ts'
import { signTc3 } from '../signatures.ts'
import { findVendorTemplate, vendorTemplates } from '../vendor-templates.ts'
import { resultOfCode } from './errors.ts'

const template = z.union([
  /** A text alone: the template has no variables. */
  z.string().min(1),
  z.strictObject({
    id: z.string().min(1),
    /** Variables of Postern in the order of {1}, {2}, … of the template. */
    params: z.array(z.string().min(1)).default([]),
    signName: z.string().min(1).optional(),
  }),
])

const settings = z.strictObject({
  secretId: z.string().min(1),
  secretKey: z.string().min(1),
  sdkAppId: z.string().min(1),
  /** Required for mainland China. */
  signName: senderByCountry(z.string().min(1)).optional(),
  /** For other regions, if a sender id is registered there. */
  senderId: z.string().min(1).optional(),
  region: z.string().min(1).default('ap-guangzhou'),
  templates: vendorTemplates(template),
  /** Give Tencent a receipt address with this value as `?token=`. Without it, receipts are refused. */
  receiptToken: z.string().min(16).optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://sms.tencentcloudapi.com'),
})

type Settings = z.infer<typeof settings>

/**
 * SMS by Tencent Cloud: version 2021-01-11, SendSms with an approved template and sign name. The notice id is sent as
 * SessionContext, which queries return. Receipts contain only the SerialNo.
 */
export const tencent = defineHttpKind({
  kind: 'tencent',
  channels: ['sms'],
  settings,
  senderOf: ({ signName }) => signName,
  connect: connectTencent,
  createReceiptReader: defineReportReader(readReport, { thanks: { result: 0, errmsg: 'OK' } }),
})

/** Tencent refuses calls of a clock that differs by more. */
const maxClockErrorSeconds = 300

const contentType = 'application/json; charset=utf-8'

function connectTencent({ ask, notUnderstood, clock }: Http, settings: Settings) {
  const { origin, host } = new URL(settings.endpoint)

  /** The `Response` object, or a result if there is none. */
  async function call(action: string, parameters: object, signal: AbortSignal) {
    const atMs = clock()
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
    const { result, answer } = await ask({ url: `${origin}/`, headers, body }, signal)
    if (result) return { result }
    const response = parseObject(answer.body)?.Response
    if (!isObject(response)) return { result: notUnderstood(answer) }
    if (!isObject(response.Error)) return { answer: response, http: answer }
    return { result: resultOfCode(response.Error.Code) ?? notUnderstood(answer) }
  }

  async function send(
    message: Message,
    signal: AbortSignal,
    sign: string | undefined,
  ): Promise<SendResult> {
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
    const [status] = objectsIn(answer.SendStatusSet)
    if (status?.Code !== 'Ok') return resultOfCode(status?.Code) ?? notUnderstood(http)
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
    const records = objectsIn(answer?.PullSmsSendStatusSet)
    const record = records.find(({ SessionContext }) => SessionContext === sent.noticeId)
    if (!record) return { kind: 'unknown', detail: 'tencent: no outcome in the answer' }
    return accepted(record.SerialNo)
  }

  return { send, query }
}

/** The status callback. `sid` of a report is the SerialNo of its send. */
function readReport(report: unknown): Receipt | undefined {
  if (!isObject(report) || typeof report.sid !== 'string' || report.sid === '') return undefined
  const { report_status: status, errmsg: code, sid: messageId } = report
  if (status !== 'SUCCESS' && status !== 'FAIL') return undefined
  return {
    messageId,
    outcome: status === 'SUCCESS' ? 'delivered' : 'failed',
    at: parseBeijingTime(report.user_receive_time),
    detail: isCode(code) ? code : undefined,
  }
}
