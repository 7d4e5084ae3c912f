import { type Conformance, codeBySms, expectedOverHttp } from '../conformance.ts'
import { startAcmeFarEnd } from '../far-ends/acme.ts'

export { http as default } from '../../../src/providers/http/index.ts'

export const token = 'test-acme-token-1234'
export const receiptToken = 'a-token-of-length'

export const entry = {
  channels: ['sms'],
  headers: { Authorization: `Bearer ${token}` },
  json: { to: '{{to}}', body: '{{text}}', ref: '{{noticeId}}', title: '{{subject}}' },
  accepted: { status: [200, 202], where: { '/code': 0 }, id: '/data/0/id' },
  errors: [
    { where: { '/code': 1002 }, is: 'invalid_recipient' },
    { where: { '/code': [1009, 1010] }, is: 'unavailable' },
    { status: 429, is: 'throttled', retryAfter: '/wait' },
  ],
  receipts: {
    token: receiptToken,
    id: '/messageId',
    state: '/status',
    delivered: ['DELIVRD'],
    failed: ['UNDELIV', 'EXPIRED'],
  },
}

/** The settings have no word for an answer about one recipient for now. */
const { postpone: _, ...expected } = expectedOverHttp

export const conformance = {
  startFarEnd: () => startAcmeFarEnd(token),
  settings: (port) => ({ ...entry, url: `http://127.0.0.1:${port}/messages` }),
  secrets: [token, receiptToken],
  message: { ...codeBySms, text: 'Your number is "738291" & nobody may ask for it.' },
  expected,
} satisfies Conformance
