import MailComposer from 'nodemailer/lib/mail-composer'
import { encodeWord } from 'nodemailer/lib/mime-funcs'
import type MimeNode from 'nodemailer/lib/mime-node'
import { encode, wrap } from 'nodemailer/lib/qp'
import type { Message, SendResult } from '../provider.ts'
import type { Mail } from './connection.ts'
import { isAddrSpec, type Sender } from './settings.ts'

export interface MailFrame {
  readonly from: Sender
  readonly messageId: string
  readonly sign?: ((mail: Buffer) => Promise<Buffer>) | undefined
}

/** Bytes of a header line (RFC 5322, 2.1.1). */
const longestLine = 998
/** Fits into a line of 76 characters after the name of the header. */
const longestWord = 52

/** The reason why a message can't be a mail. */
export function faultOfMail({ to, listUnsubscribe }: Message): SendResult | undefined {
  if (!isAddrSpec(to)) return { kind: 'invalid_recipient', detail: 'not one plain address' }
  // An address can't be folded.
  return `List-Unsubscribe: <${listUnsubscribe}>`.length > longestLine
    ? { kind: 'rejected', detail: 'List-Unsubscribe is longer than a line' }
    : undefined
}

export async function composeMail(
  message: Message,
  { from, messageId, sign }: MailFrame,
): Promise<Mail> {
  const { text, html } = message
  const mail = new MailComposer({
    from,
    // Addresses as objects are not parsed again; they were checked before.
    to: { name: '', address: message.to },
    messageId,
    // Replaces random bytes, which nodemailer would draw even for a mail of one part.
    baseBoundary: message.noticeId,
    text,
    // Spam filters suspect a text in base64.
    textEncoding: 'quoted-printable',
    ...(html === undefined ? {} : { html }),
    headers: {
      Subject: subjectHeader(message.subject ?? ''),
      // RFC 3834: automatic replies should not answer a code.
      'Auto-Submitted': 'auto-generated',
      ...unsubscribeHeaders(message.listUnsubscribe),
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  }).compile()
  const bytes = Buffer.from(endLine(write(mail)))
  return { envelope: mail.getEnvelope(), bytes: sign ? await sign(bytes) : bytes }
}

/** The headers of RFC 2369 and, for one-click addresses, of RFC 8058. */
function unsubscribeHeaders(link: string | undefined) {
  if (link === undefined) return {}
  const name = 'List-Unsubscribe'
  return {
    [name]: { value: `<${link}>`, prepared: true },
    ...(link.startsWith('https:') ? { [`${name}-Post`]: `${name}=One-Click` } : {}),
  }
}

/**
 * The header `Subject`, whose text contains values of callers. nodemailer does not encode two kinds of text. One is an
 * encoded-word (RFC 2047): mail programs decode it, and could show characters that the API forbids. The other is a long
 * word without a space: it can't be folded, so a line may be too long. Such a subject is encoded as a whole.
 */
function subjectHeader(subject: string) {
  const isFoldable = subject.split(' ').every((word) => word.length < longestWord)
  if (isFoldable && !subject.includes('=?')) return subject
  const oneLine = subject.replace(/[\r\n]+/g, ' ')
  return { value: encodeWord(oneLine, 'B', longestWord), prepared: true, foldLines: true }
}

/**
 * The text of a node, as `MimeNode.build` would make it. `build` itself passes each part through five streams, which
 * costs three times the processor time of all other steps.
 */
function write(node: MimeNode): string {
  // This also sets the boundary.
  const headers = `${node.buildHeaders()}\r\n\r\n`
  if (!node.multipart) return headers + writeContent(node)
  const open = `--${node.boundary}`
  const parts = node.childNodes.map((part) => `${open}\r\n${write(part)}\r\n`)
  return `${headers}${parts.join('')}${open}--\r\n`
}

function writeContent(node: MimeNode): string {
  const content = String(node.content ?? '')
  return node.getTransferEncoding() === 'quoted-printable' ? wrap(encode(content)) : content
}

const endLine = (text: string) => (text.endsWith('\n') ? text : `${text}\r\n`)
