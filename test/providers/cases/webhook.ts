import { type Conformance, codeBySms, expectedOverHttp } from '../conformance.ts'
import { startWebhookFarEnd } from '../far-ends/webhook.ts'

export { webhook as default } from '../../../src/providers/webhook/index.ts'

export const secret = `whsec_${Buffer.from('a secret of twenty-four b').toString('base64')}`

/** A webhook has no answer for a recipient that cannot be reached. */
const { invalid_recipient: _, ...expected } = expectedOverHttp

export const conformance = {
  startFarEnd: () => startWebhookFarEnd(secret),
  settings: (port) => ({ url: `http://127.0.0.1:${port}/send`, secret }),
  secrets: [secret, secret.slice(6)],
  message: codeBySms,
  expected,
} satisfies Conformance
