import fc from 'fast-check'
import MailComposer from 'nodemailer/lib/mail-composer'
import { expect, test, vi } from 'vitest'
import { composeMail } from '../../src/providers/smtp/compose.ts'

/** Lines of any length, with all characters that an encoding must change. */
const text = fc
  .array(fc.oneof(fc.string({ unit: 'binary', maxLength: 120 }), fc.string({ maxLength: 120 })))
  .map((lines) => lines.join('\n'))

test('composeMail: the same bytes as nodemailer’s own build, for any text with and without HTML', async () => {
  vi.useFakeTimers({ toFake: ['Date'] })
  const compile = vi.spyOn(MailComposer.prototype, 'compile')
  const frame = {
    from: { name: 'Acmé', address: 'no-reply@acme.test' },
    messageId: '<1@acme.test>',
  }
  const mails = fc.record(
    { subject: text, text: text.filter(Boolean), html: text.filter(Boolean) },
    { requiredKeys: ['text'] },
  )
  await fc.assert(
    fc.asyncProperty(mails, async (mail) => {
      const message = {
        noticeId: 'notice',
        channel: 'email',
        to: 'ada@exämple.test',
        template: 'welcome',
        locale: 'en',
        variables: {},
        ...mail,
      } as const
      const { bytes } = await composeMail(message, frame)
      const node = compile.mock.results.at(-1)?.value
      expect(bytes.toString()).toBe((await node.build()).toString())
    }),
    { numRuns: 100 },
  )
})
