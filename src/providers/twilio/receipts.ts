import { optOutIn } from '../../base/opt-out.ts'
import type { ParsedReceipts, ReceiptReader, ReceiptRequest } from '../../base/receipt.ts'
import { forged, malformed, outcomesBy, readingOf, understood } from '../receipt-readers.ts'
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

const outcomeOf = outcomesBy({
  // The last one is of a call. A mailbox that answers counts as a person.
  delivered: 'delivered read completed',
  failed: 'failed undelivered canceled busy no-answer',
  notFinal:
    'accepted scheduled queued sending sent receiving received initiated ringing in-progress answered',
})

/** Checks the signature against the address in the settings. A proxy may have changed the address of the request. */
function parseReceipts(request: ReceiptRequest, settings: TwilioSettings): ParsedReceipts {
  const { noticeId } = request.query
  const reference = typeof noticeId === 'string' && noticeId !== '' ? noticeId : undefined
  const url = callbackUrl(settings, reference)
  const form = new URLSearchParams(request.rawBody.toString())
  if (form.size > maxFields) return malformed
  const signature = request.headers['x-twilio-signature']
  if (!url || !isSignedByTwilio(settings.authToken, url, form, signature)) {
    return forged
  }
  const fromPerson = readIncoming(form)
  if (fromPerson) return fromPerson
  const messageId = form.get('MessageSid') ?? form.get('CallSid')
  const status = form.get('MessageStatus') ?? form.get('CallStatus')
  if (!messageId || !status) return malformed
  const outcome = outcomeOf(status)
  const code = form.get('ErrorCode')
  // A call that failed has no error but its status.
  const reason = outcome === 'failed' && form.has('CallStatus') ? `twilio ${status}` : undefined
  const detail = code && /^\d{1,6}$/.test(code) ? `twilio ${code}` : reason
  const reading = readingOf(outcome, { messageId, noticeId: reference, detail })
  return understood([reading], { status: 204 })
}

/** TwiML without an instruction: Twilio sends nothing back. */
const noReply = { contentType: 'text/xml', body: '<Response></Response>' }

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
  return { ...understood([], noReply), optOuts: optOut ? [optOut] : [] }
}
