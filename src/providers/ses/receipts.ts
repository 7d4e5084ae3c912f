import { z } from 'zod'
import { parseObject } from '../../base/json.ts'
import {
  type Receipt,
  type ReceiptReader,
  type ReceiptRequest,
  unreadable,
} from '../../base/receipt.ts'
import { forged, maxUnprovenBytes, notFinal, type Reading, understood } from '../receipt-readers.ts'
import { createSns, readSnsMessage } from './sns.ts'

/**
 * Reports of SES, which come by SNS: as feedback notifications of an identity (`notificationType`) or as events of a
 * configuration set (`eventType`). https://docs.aws.amazon.com/ses/latest/dg/notification-contents.html
 */
const report = z.object({
  notificationType: z.string().optional(),
  eventType: z.string().optional(),
  mail: z.object({
    messageId: z.string(),
    tags: z.object({ noticeId: z.array(z.string()).optional() }).optional(),
  }),
  bounce: z
    .object({ bounceType: z.string().optional(), bounceSubType: z.string().optional() })
    .optional(),
  complaint: z.object({ complaintFeedbackType: z.string().nullish() }).optional(),
})

export function createReceiptReader({
  origin,
  topics,
}: {
  origin: string | undefined
  topics?: readonly string[] | undefined
}): ReceiptReader {
  const sns = createSns(origin)

  /** A message of one of the topics. `forged` for any other text that could be one. */
  const messageIn = ({ rawBody }: ReceiptRequest) => {
    const message = readSnsMessage(rawBody.toString())
    return message && (topics?.includes(message.TopicArn) ?? true) ? message : undefined
  }

  return {
    maxBodyBytes: maxUnprovenBytes,
    mayBeGenuine({ headers }) {
      const topic = headers['x-amz-sns-topic-arn']
      return topic === undefined || topics === undefined || topics.includes(String(topic))
    },
    async fetchProof(request) {
      const message = messageIn(request)
      return !message || sns.fetchCertificate(message, request.receivedAt)
    },
    parse(request) {
      const message = messageIn(request)
      if (!message || !sns.isSigned(message, request.receivedAt)) return forged
      if (message.Type !== 'Notification') return understood([])
      return understood([readReport(message.Message, topics !== undefined)])
    },
    async confirm(request) {
      const message = messageIn(request)
      if (message?.Type !== 'SubscriptionConfirmation') return true
      return sns.confirm(message, request.receivedAt)
    },
  }
}

/**
 * Anyone with an account of AWS has a topic, and pages learn the ids of notices. Only SES and the recipient know the
 * message id. So the notice id counts only with `isOfTopic`.
 */
function readReport(text: string, isOfTopic: boolean): Reading {
  // SES writes this sentence when an operator selects the topic.
  if (text.startsWith('Successfully validated SNS topic')) return notFinal
  const { data } = report.safeParse(parseObject(text))
  const type = data?.eventType ?? data?.notificationType
  if (!data || type === undefined) return unreadable
  const result = resultOf(type, data)
  if (!result || result === notFinal) return result ?? unreadable
  const { messageId, tags } = data.mail
  return { messageId, noticeId: isOfTopic ? tags?.noticeId?.[0] : undefined, ...result }
}

function resultOf(
  type: string,
  { bounce, complaint }: z.infer<typeof report>,
): Pick<Receipt, 'outcome' | 'detail'> | typeof notFinal | undefined {
  switch (type) {
    case 'Send':
    case 'DeliveryDelay':
    case 'Open':
    case 'Click':
    case 'Subscription':
      return notFinal
    case 'Delivery':
      return { outcome: 'delivered' }
    case 'Reject':
    case 'Rendering Failure':
      return { outcome: 'failed', detail: `ses ${type}` }
    case 'Bounce': {
      const words = [bounce?.bounceType, bounce?.bounceSubType].filter(isWord)
      const outcome = bounce?.bounceType === 'Permanent' ? 'bounced' : 'failed'
      return { outcome, detail: ['ses', ...words].join(' ') }
    }
    case 'Complaint':
      // The person took the mail out of the spam folder (RFC 6430).
      return complaint?.complaintFeedbackType === 'not-spam' ? notFinal : { outcome: 'complained' }
    default:
      return undefined
  }
}

const isWord = (text: string | undefined): text is string => /^\w{1,40}$/.test(text ?? '')
