import { z } from 'zod'
import { createBoundedMap } from '../../base/bounded-map.ts'
import { isObject, parseObject } from '../../base/json.ts'
import { addressBelow, defineHttpKind, type Http, type HttpAnswer } from '../http-provider.ts'
import { type Message, type SendResult, type SentMessage, secondsLeft } from '../provider.ts'
import { accepted, isCode, type Refusal, refused, wordsBy } from '../send-result.ts'
import { createReceiptReader } from './receipts.ts'

const settings = z.strictObject({
  /** The access token of the Gateway account. It also signs reports. */
  token: z.string().min(1),
  /** The verified Telegram channel that sends the codes. Without it, Telegram sends them itself. */
  senderUsername: z
    .string()
    .regex(/^[A-Za-z]\w{3,31}$/, 'must be a username without @')
    .optional(),
  /** The public address for reports. */
  callbackUrl: z
    .url({ protocol: /^https?$/ })
    .max(256)
    .optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://gatewayapi.telegram.org'),
})

type Settings = z.infer<typeof settings>

/**
 * Codes by Telegram's Gateway API. A message has two calls: whether the number can get it, which is billed if it can, and
 * the send, which is then free. So a process keeps the request of a message that was not sent, and asks only once.
 * The notice id is the request's payload, which reports repeat.
 */
export const telegram = defineHttpKind({
  kind: 'telegram',
  channels: ['telegram'],
  settings,
  connect: connectTelegram,
  createReceiptReader,
  probe: {
    call: (settings) => ({
      method: 'POST',
      url: addressBelow(settings.endpoint, 'checkVerificationStatus'),
      headers: headersOf(settings),
      body: '{"request_id":"0"}',
    }),
    faultIn(answer) {
      const error = errorOf(answer)
      if (error?.startsWith('ACCESS_TOKEN')) return 'telegram refuses this token'
      // No request has this id, so an error about the id shows that the token is right.
      return error === undefined ? `telegram answers ${answer.status}` : undefined
    },
  },
})

const shortestTtlSeconds = 30
const longestTtlSeconds = 3_600
/** Requests of messages that are not sent yet. */
const maxRequests = 10_000

const headersOf = ({ token }: Settings) => ({
  authorization: `Bearer ${token}`,
  'content-type': 'application/json',
})

function connectTelegram({ ask, notUnderstood }: Http, settings: Settings) {
  const { senderUsername, callbackUrl, endpoint } = settings
  /** The request of each notice. `mayBeUsed`: a send by it got no answer of Telegram, so its message may have been sent. */
  const requests = createBoundedMap<{ id: string; mayBeUsed: boolean }>(maxRequests)
  const headers = headersOf(settings)

  /** The `result` of a successful answer, or the result of the attempt. */
  async function call(method: string, asked: object, signal: AbortSignal) {
    const url = addressBelow(endpoint, method)
    const request = { url, headers, body: JSON.stringify(asked) }
    const { result, answer } = await ask(request, signal, (answer) => {
      const error = errorOf(answer)
      return error === undefined ? undefined : resultOfError(error)
    })
    if (result) return { result }
    const { ok, result: found } = parseObject(answer.body) ?? {}
    if (ok === true && isObject(found) && typeof found.request_id === 'string') return { found }
    return { result: notUnderstood(answer) }
  }

  /** Billed if the number can get a message. */
  async function openRequest({ to, noticeId }: Message, signal: AbortSignal) {
    const { result, found } = await call('checkSendAbility', { phone_number: to }, signal)
    // Nothing was handed over yet.
    if (result) return { result: result.kind === 'unknown' ? unavailable(result.detail) : result }
    const opened = { id: String(found.request_id), mayBeUsed: false }
    requests.set(noticeId, opened)
    return opened
  }

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const { to, noticeId, variables } = message
    const code = variables.code ?? ''
    if (!/^\d{4,8}$/.test(code)) {
      return { kind: 'rejected', detail: 'telegram: sends only codes of 4 to 8 digits' }
    }
    const kept = requests.get(noticeId)
    const opened = kept ?? (await openRequest(message, signal))
    if ('result' in opened) return opened.result
    const { result } = await call(
      'sendVerificationMessage',
      {
        phone_number: to,
        request_id: opened.id,
        code,
        payload: noticeId,
        ttl: secondsLeft(message, longestTtlSeconds, shortestTtlSeconds),
        sender_username: senderUsername,
        callback_url: callbackUrl,
      },
      signal,
    )
    if (!result || isRepeat(result)) {
      requests.delete(noticeId)
      return accepted(opened.id)
    }
    // A request sends once: "repeated calls will result in an error". The page names no such error.
    const sent = opened.mayBeUsed && result.kind === 'rejected' && (await query(message, signal))
    // A request of another attempt can have ended meanwhile.
    if (isAboutRequest(result)) requests.delete(noticeId)
    if (sent && sent.kind !== 'unavailable') return sent
    opened.mayBeUsed ||= result.kind === 'unavailable' || result.kind === 'unknown'
    return isAboutRequest(result) && kept ? send(message, signal) : result
  }

  /** Only the process that sent the message knows its request. */
  async function query(
    { noticeId }: Pick<SentMessage, 'noticeId'>,
    signal: AbortSignal,
  ): Promise<SendResult> {
    const request = requests.get(noticeId)
    if (!request) return { kind: 'unknown', detail: 'telegram: no request' }
    const asked = { request_id: request.id }
    const { result, found } = await call('checkVerificationStatus', asked, signal)
    if (result) return { kind: 'unknown', detail: 'telegram: no status' }
    if (!isObject(found.delivery_status)) return unavailable('telegram: not sent')
    requests.delete(noticeId)
    return accepted(request.id)
  }

  return { send, query }
}

const unavailable = (detail: string) => ({ kind: 'unavailable', detail }) as const

/** The name of an unsuccessful answer. */
function errorOf({ body }: Pick<HttpAnswer, 'body'>): string | undefined {
  const { ok, error } = parseObject(body) ?? {}
  return ok === false && typeof error === 'string' ? error : undefined
}

const isRepeat = (result: SendResult) =>
  result.kind === 'rejected' && result.detail.endsWith('MESSAGE_ALREADY_SENT')
const isAboutRequest = (result: SendResult) =>
  result.kind === 'rejected' && result.detail.includes('REQUEST_ID')

/** Errors that change the result. Telegram has no list of them; these are of its page and of its answers. */
const kinds = wordsBy<Refusal>({
  invalid_recipient: 'PHONE_NUMBER_NOT_AVAILABLE PHONE_NUMBER_NOT_FOUND PHONE_NUMBER_INVALID',
  unavailable: [
    'ACCESS_TOKEN_INVALID ACCESS_TOKEN_REQUIRED BALANCE_NOT_ENOUGH SENDER_NOT_FOUND',
    'SENDER_NOT_OWNED SENDER_NOT_VERIFIED SENDER_USERNAME_INVALID',
  ].join(' '),
})

/** `error`: the name of an unsuccessful answer. */
function resultOfError(error: string): SendResult {
  const seconds = /^FLOOD_WAIT_(\d{1,6})$/.exec(error)?.[1]
  if (seconds) return refused('throttled', 'telegram FLOOD_WAIT', Number(seconds) * 1_000)
  const detail = isCode(error) ? `telegram ${error}` : 'telegram error'
  return refused(kinds.get(error) ?? 'rejected', detail)
}
