import MailComposer from 'nodemailer/lib/mail-composer'
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

/** The mail of a message, in one piece: nodemailer composes it in nine if it has text and HTML. */
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
    // Spam filters count base64 against a text.
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
  const bytes = await mail.build()
  return { envelope: mail.getEnvelope(), bytes: sign ? await sign(bytes) : bytes }
}
