import type { Conformance } from '../conformance.ts'
import { startSmtpFarEnd } from '../far-ends/smtp.ts'

export { smtp as default } from '../../../src/providers/smtp/index.ts'

export const from = 'Acme <no-reply@acme.test>'

export const conformance = {
  startFarEnd: () => startSmtpFarEnd(),
  settings: (port) => ({ url: `smtp://127.0.0.1:${port}`, from }),
  secrets: [],
  message: {
    channel: 'email',
    to: 'ada.lovelace@example.test',
    template: 'captcha',
    locale: 'en',
    variables: { code: '738291' },
    subject: 'Your sign-in number',
    text: 'Your number is 738291. It is good for five minutes.',
    html: '<p>Your number is <b>738291</b>.</p>',
  },
  expected: {
    accept: 'accepted',
    reject: 'rejected',
    invalid_recipient: 'invalid_recipient',
    postpone: 'postponed',
    unavailable: 'unavailable',
    error_inside: 'invalid_recipient',
    hang: 'unavailable',
    refuse_talk: 'unavailable',
    babble: 'unavailable',
    reset_mid_answer: 'unknown',
    lose_answer: 'unknown',
  },
} satisfies Conformance
