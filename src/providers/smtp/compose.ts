import MailComposer from 'nodemailer/lib/mail-composer'
import type MimeNode from 'nodemailer/lib/mime-node'
import { encode, wrap } from 'nodemailer/lib/qp'
import type { Message } from '../provider.ts'
import type { Mail } from './connection.ts'
import type { Sender } from './settings.ts'
import { subjectHeader } from './subject.ts'

export interface MailFrame {
  readonly from: Sender
  readonly messageId: string
  readonly headers: Readonly<Record<string, string | { value: string; prepared: boolean }>>
  readonly sign?: ((mail: Buffer) => Promise<Buffer>) | undefined
}

export async function composeMail(
  message: Message,
  { from, messageId, headers, sign }: MailFrame,
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
      ...headers,
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  }).compile()
  const bytes = Buffer.from(endLine(write(mail)))
  return { envelope: mail.getEnvelope(), bytes: sign ? await sign(bytes) : bytes }
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
