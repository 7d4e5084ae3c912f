import type { Conformance } from '../conformance.ts'
import { startWebhookFarEnd } from '../far-ends/webhook.ts'

export { webhook as default } from '../../../src/providers/webhook/index.ts'

export const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`

export const conformance = {
  startFarEnd: () => startWebhookFarEnd(secret),
  settings: (port) => ({ url: `http://127.0.0.1:${port}/send`, secret }),
  secrets: [secret, secret.slice(6)],
  message: {
    channel: 'sms',
    to: '+447700900123',
    template: 'captcha',
    locale: 'en',
    variables: { code: '738291' },
    text: 'Your number is 738291.',
  },
  expected: {
    accept: 'accepted',
    reject: 'rejected',
    throttle: 'throttled',
    postpone: 'postponed',
    unavailable: 'unavailable',
    error_inside: 'unavailable',
    hang: 'unknown',
    refuse_talk: 'unknown',
    reset_mid_answer: 'unknown',
    lose_answer: 'unknown',
    babble: 'unknown',
  },
} satisfies Conformance
