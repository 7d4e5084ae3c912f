import { isObject } from '../../base/json.ts'
import type { Receipt } from '../../base/receipt.ts'
import { beijingDay, parseBeijingTime } from '../beijing-time.ts'
import { defineHttpKind, type Http } from '../http-provider.ts'
import type { Message, SendResult, SentMessage } from '../provider.ts'
import { defineReportReader } from '../receipt-readers.ts'
import { accepted, isCode } from '../send-result.ts'
import {
  type AliyunSettings,
  aliyunSettings,
  createAliyunCall,
  noTemplate,
  textOf,
} from './call.ts'

/**
 * SMS by Alibaba Cloud: Dysmsapi of 2017-05-25, SendSms with an approved template and sign name. The notice id is sent as
 * OutId; receipts and queries return it. The API does not detect repeats.
 */
export const aliyun = defineHttpKind({
  kind: 'aliyun',
  channels: ['sms'],
  settings: aliyunSettings,
  senderOf: ({ signName }) => signName,
  connect: connectAliyun,
  /** SmsReport in its HTTP form. Without this answer, Aliyun pushes the reports again, up to ten times. */
  createReceiptReader: defineReportReader(readReport, { thanks: { code: 0, msg: 'OK' } }),
})

/** A younger message may be missing from the records of a query although it was accepted. */
const recordDelayMs = 60_000
/** Aliyun refuses calls of a clock that differs by more. */
const maxClockErrorMs = 900_000
/** The longest page of records. */
const pageSize = 50
/** Ends a query whose pages never end. */
const maxPages = 20

function connectAliyun(http: Http, settings: AliyunSettings) {
  const { clock } = http
  const call = createAliyunCall(http, settings)

  async function send(message: Message, signal: AbortSignal, sign = ''): Promise<SendResult> {
    const number = vendorNumber(message.to)
    if (!number) return { kind: 'rejected', detail: 'aliyun: would be read as a number of China' }
    const text = textOf(settings, message, sign)
    if (!text) return noTemplate
    const query = { PhoneNumbers: number, ...text, OutId: message.noticeId }
    const { result, answer } = await call('SendSms', query, signal)
    if (result) return result
    return accepted(answer.BizId)
  }

  /** Whether the records of one day have the message: undefined if the answers do not show it. `atMs`: Aliyun's time. */
  async function findIn(day: string, number: string, noticeId: string, signal: AbortSignal) {
    const query = { PhoneNumber: number, SendDate: day, PageSize: String(pageSize) }
    for (let page = 1; page <= maxPages; page += 1) {
      const asked = { ...query, CurrentPage: String(page) }
      const { answer, atMs } = await call('QuerySendDetails', asked, signal)
      const details = answer?.SmsSendDetailDTOs
      const records = isObject(details) ? details.SmsSendDetailDTO : undefined
      if (!Array.isArray(records)) return { isTaken: undefined, atMs }
      const isTaken = records.some((record) => isObject(record) && record.OutId === noticeId)
      if (isTaken || records.length < pageSize) return { isTaken, atMs }
    }
    return { isTaken: undefined }
  }

  /**
   * A record has the day on which Aliyun accepted the message. Near midnight, that can be the day before or after. A day
   * that has not begun at Aliyun has no records, and may be refused.
   */
  async function query(sent: SentMessage, signal: AbortSignal): Promise<SendResult> {
    const { sentAt, noticeId } = sent
    const number = vendorNumber(sent.to)
    if (!number) return { kind: 'unavailable', detail: 'aliyun: is not given such numbers' }
    const days = new Set([sentAt - maxClockErrorMs, sentAt + maxClockErrorMs].map(beijingDay))
    let today: string | undefined
    let isKnown = true
    for (const day of days) {
      if (today !== undefined && day > today) continue
      const { isTaken, atMs } = await findIn(day, number, noticeId, signal)
      if (isTaken) return accepted()
      if (isTaken === undefined) isKnown = false
      if (atMs) today = beijingDay(atMs)
    }
    if (!isKnown) return { kind: 'unknown', detail: 'aliyun: no outcome in the answer' }
    return clock() - sentAt > recordDelayMs
      ? { kind: 'unavailable', detail: 'aliyun: the message is not in the records' }
      : { kind: 'unknown', detail: 'aliyun: the message is not in the records yet' }
  }

  return { send, query }
}

/**
 * The number as Aliyun reads it: the eleven digits in mainland China, country code and number elsewhere.
 *
 * Undefined for numbers of North America (+1). They have eleven digits that begin with 1, as mobiles of mainland China
 * have, and Aliyun reads such digits as a number of mainland China, with `+` and without
 * (https://help.aliyun.com/zh/sms/developer-reference/api-error-codes, isv.MOBILE_NUMBER_ILLEGAL). The code would reach a
 * stranger.
 */
function vendorNumber(to: string): string | undefined {
  const mainland = /^\+86(1\d{10})$/.exec(to)?.[1]
  if (mainland) return mainland
  return /^\+1\d{10}$/.test(to) ? undefined : to.replace(/^\+/, '')
}

function readReport(report: unknown): Receipt | undefined {
  if (!isObject(report) || typeof report.success !== 'boolean') return undefined
  const { biz_id: messageId, out_id: noticeId, err_code: code } = report
  if (!isId(messageId) && !isId(noticeId)) return undefined
  return {
    messageId: isId(messageId) ? messageId : undefined,
    noticeId: isId(noticeId) ? noticeId : undefined,
    outcome: report.success ? 'delivered' : 'failed',
    at: parseBeijingTime(report.report_time),
    detail: isCode(code) ? code : undefined,
  }
}

const isId = (value: unknown): value is string => typeof value === 'string' && value !== ''
