import { optOutIn } from '../../base/opt-out.ts'
import {
  type ParsedReceipts,
  type ReceiptReader,
  type ReceiptRequest,
  unreadable,
} from '../../base/receipt.ts'
import { callbackUrl, type TwilioSettings } from './settings.ts'
import { isSignedByTwilio } from './signature.ts'

const maxFields = 200

export function createReceiptReader(settings: TwilioSettings): ReceiptReader {
  return {
    // A call of Twilio is a form with about twelve fields.
    maxBodyBytes: 16_384,
    mayBeGenuine: ({ headers }) => typeof headers['x-twilio-signature'] === 'string',
    parse: (request) => parseReceipts(request, settings),
  }
}

const outcomes: Readonly<Record<string, 'delivered' | 'failed'>> = {
  delivered: 'delivered',
  read: 'delivered',
  failed: 'failed',
  undelivered: 'failed',
  canceled: 'failed',
  // Statuses of calls. A mailbox that answers counts as a person.
  completed: 'delivered',
  busy: 'failed',
  'no-answer': 'failed',
}

const otherStatuses = [
  'accepted',
  'scheduled',
  'queued',
  'sending',
  'sent',
  'receiving',
  'received',
  'initiated',
  'ringing',
  'in-progress',
  'answered',
]

/** A call that failed has no error but its status. */
function reasonOf(form: URLSearchParams): string | undefined {
  const status = form.get('CallStatus')
  return status && outcomes[status] === 'failed' ? `twilio ${status}` : undefined
}

/** Checks the signature against the address in the settings. A proxy may have changed the address of the request. */
function parseReceipts(request: ReceiptRequest, settings: TwilioSettings): ParsedReceipts {
  const { noticeId } = request.query
  const reference = typeof noticeId === 'string' && noticeId !== '' ? noticeId : undefined
  const url = callbackUrl(settings, reference)
  const form = new URLSearchParams(request.rawBody.toString())
  if (form.size > maxFields) return { ok: false, reason: 'malformed' }
  const signature = request.headers['x-twilio-signature']
  if (!url || !isSignedByTwilio(settings.authToken, url, form, signature)) {
    return { ok: false, reason: 'forged' }
  }
  const fromPerson = readIncoming(form)
  if (fromPerson) return fromPerson
  const messageId = form.get('MessageSid') ?? form.get('CallSid')
  const status = form.get('MessageStatus') ?? form.get('CallStatus')
  if (!messageId || !status) return { ok: false, reason: 'malformed' }
  const outcome = Object.hasOwn(outcomes, status) ? outcomes[status] : undefined
  const code = form.get('ErrorCode')
  const receipt = outcome && {
    messageId,
    noticeId: reference,
    outcome,
    detail: code && /^\d{1,6}$/.test(code) ? `twilio ${code}` : reasonOf(form),
  }
  const isKnown = outcome !== undefined || otherStatuses.includes(status)
  return {
    ok: true,
    // An unknown status is counted. Twilio does not correct it, so it gets no error.
    receipts: isKnown ? (receipt ? [receipt] : []) : [unreadable],
    reply: { status: 204, contentType: 'text/plain', body: '' },
  }
}

/** TwiML without an instruction: Twilio sends nothing back. */
const noReply = { status: 200, contentType: 'text/xml', body: '<Response></Response>' }

/**
 * A message of a person, at the same address. `OptOutType` is Twilio's own reading of the text, in any language
 * (https://www.twilio.com/docs/messaging/tutorials/advanced-opt-out). Without Advanced Opt-Out there is only the text.
 */
function readIncoming(form: URLSearchParams): ParsedReceipts | undefined {
  const [body, type, number] = [form.get('Body'), form.get('OptOutType'), form.get('From')]
  if (number === null || form.has('MessageStatus') || (body === null && type === null)) {
    return undefined
  }
  const optOut = optOutIn(number, type ?? body ?? '')
  return { ok: true, receipts: [], optOuts: optOut ? [optOut] : [], reply: noReply }
}
