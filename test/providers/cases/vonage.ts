import { type Conformance, codeBySms, expectedOverHttp } from '../conformance.ts'
import { startVonageFarEnd } from '../far-ends/vonage.ts'

export { vonage as default } from '../../../src/providers/vonage/index.ts'

export const entry = {
  apiKey: 'abcd1234',
  apiSecret: 'test-api-secret',
  from: 'Acme',
  receiptToken: 'a-token-of-length',
}

const { postpone, ...expected } = expectedOverHttp

export const conformance = {
  startFarEnd: () => startVonageFarEnd(entry),
  settings: (port) => ({ ...entry, endpoint: `http://127.0.0.1:${port}` }),
  secrets: [entry.apiSecret, entry.receiptToken],
  message: { ...codeBySms, text: 'Your number is 738291 & nobody may ask for it.' },
  expected,
} satisfies Conformance
