import MailComposer from 'nodemailer/lib/mail-composer'
import type { Message } from '../provider.ts'
import type { Mail } from './connection.ts'
import type { Sender } from './settings.ts'
import { subjectHeader } from './subject.ts'

/** The mail of a message, in one piece: nodemailer composes it in nine if it has text and HTML. */
export async function composeMail(
  message: Message,
  from: Sender,
  messageId: string,
  headers: Readonly<Record<string, string | { value: string; prepared: boolean }>>,
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
  return { envelope: mail.getEnvelope(), bytes: await mail.build() }
}
