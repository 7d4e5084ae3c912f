import { type Conformance, codeBySms, expectedOverHttp } from '../conformance.ts'
import { startTwilioFarEnd } from '../far-ends/twilio.ts'

export { twilio as default } from '../../../src/providers/twilio/index.ts'

export const accountSid = `AC${'0'.repeat(32)}`
export const authToken = 'test-auth-token'
const statusCallback = 'https://postern.test/v1/receipts/twilio'
export const entry = { accountSid, authToken, from: '+15005550006', statusCallback }

export const conformance = {
  startFarEnd: () => startTwilioFarEnd(accountSid, authToken),
  settings: (port) => ({ ...entry, endpoint: `http://127.0.0.1:${port}` }),
  secrets: [authToken, Buffer.from(`${accountSid}:${authToken}`).toString('base64')],
  message: { ...codeBySms, text: 'Your number is 738291 & nobody may ask for it.' },
  expected: { ...expectedOverHttp, error_inside: 'invalid_recipient' },
} satisfies Conformance
