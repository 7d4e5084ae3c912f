import { z } from 'zod'
import { parseObject } from '../../base/json.ts'
import { defineHttpKind, type Http } from '../http-provider.ts'
import type { Message, SendResult } from '../provider.ts'
import { accepted, isCode, type Refusal, refused, wordsBy } from '../send-result.ts'
import { signAws4 } from '../signatures.ts'
import { composeMail, faultOfMail } from '../smtp/compose.ts'
import { sender } from '../smtp/settings.ts'
import { createReceiptReader } from './receipts.ts'

const settings = z
  .strictObject({
    accessKeyId: z.string().min(1),
    secretAccessKey: z.string().min(1),
    region: z.string().regex(/^[a-z]{2}(-[a-z]+)+-\d$/, 'must be a region such as eu-west-1'),
    from: sender,
    configurationSet: z
      .string()
      .regex(/^[\w-]{1,64}$/)
      .optional(),
    /** Default: the address of SES in this region. */
    endpoint: z.url({ protocol: /^https?$/ }).optional(),
    /** The topics of SNS whose reports count. Absent: every topic, but only by the message id. */
    topics: z
      .array(z.string().regex(/^arn:[\w-]+:sns:[\w-]+:\d{12}:\S+$/))
      .min(1)
      .optional(),
  })
  .transform(({ endpoint, ...settings }) => ({
    ...settings,
    endpoint: endpoint ?? `https://email.${settings.region}.amazonaws.com`,
    /** A simulator of AWS has SNS at the same place. */
    origin: endpoint === undefined ? undefined : new URL(endpoint).origin,
  }))

type Settings = z.infer<typeof settings>

/**
 * Mail by Amazon SES: SendEmail of its API v2, with the whole mail as `smtp` composes it. SES adds DKIM and replaces
 * the Message-ID, so the notice id is sent as a tag; SES repeats it in its events. SES does not detect repeated sends.
 */
export const ses = defineHttpKind({
  kind: 'ses',
  channels: ['email'],
  settings,
  connect: connectSes,
  createReceiptReader,
})

const path = '/v2/email/outbound-emails'

function connectSes({ ask, notUnderstood, clock }: Http, settings: Settings) {
  const { origin, host } = new URL(settings.endpoint)
  const { from, configurationSet } = settings

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const fault = faultOfMail(message)
    if (fault) return fault
    const messageId = `<${message.noticeId}@email.amazonses.com>`
    const { bytes } = await composeMail(message, { from, messageId })
    const body = JSON.stringify({
      Destination: { ToAddresses: [message.to] },
      Content: { Raw: { Data: bytes.toString('base64') } },
      EmailTags: [{ Name: 'noticeId', Value: message.noticeId }],
      ConfigurationSetName: configurationSet,
    })
    const headers = { host, 'content-type': 'application/json' }
    const atMs = clock()
    const signed = signAws4({ service: 'ses', path, headers, body, atMs }, settings)
    const { result, answer } = await ask({ url: `${origin}${path}`, headers: signed, body }, signal)
    if (result) return result
    const sent = parseObject(answer.body)
    if (answer.status >= 300) {
      return resultOfError(answer.headers['x-amzn-errortype'] ?? sent?.__type, answer.status)
    }
    return typeof sent?.MessageId === 'string' ? accepted(sent.MessageId) : notUnderstood(answer)
  }

  return { send }
}

/**
 * Maps the errors of SES to results. None is about one recipient: SES accepts a mail to any address, and a bounce comes
 * later. So the errors concern the mail (`rejected`) or the account.
 */
const kinds = wordsBy<Refusal>({
  rejected: 'MessageRejected BadRequestException',
  // ThrottlingException is the common error of all services of AWS.
  throttled: 'TooManyRequestsException ThrottlingException LimitExceededException',
})

/** The pause when the quota of 24 hours is used up. */
const quotaWaitMs = 3_600_000

export function resultOfError(type: unknown, status: number): SendResult {
  // The header may go on with a colon and an address.
  const [name] = typeof type === 'string' ? type.split(':') : []
  const detail = isCode(name) ? `ses ${name}` : `ses HTTP ${status}`
  const waitMs = name === 'LimitExceededException' ? quotaWaitMs : undefined
  return refused(kinds.get(name) ?? 'unavailable', detail, waitMs)
}
