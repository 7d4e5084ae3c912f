import { type Conformance, expectedOverHttp } from '../conformance.ts'
import { startSesFarEnd } from '../far-ends/ses.ts'

export { ses as default } from '../../../src/providers/ses/index.ts'

export const key = { id: 'AKIDTEST', secret: 'test-secret-access-key' }
export const entry = {
  accessKeyId: key.id,
  secretAccessKey: key.secret,
  region: 'eu-west-1',
  from: 'Acme <no-reply@acme.test>',
}

const { postpone, invalid_recipient, ...expected } = expectedOverHttp

export const conformance = {
  startFarEnd: () => startSesFarEnd(key),
  settings: (port) => ({ ...entry, endpoint: `http://127.0.0.1:${port}` }),
  secrets: [key.secret],
  message: {
    channel: 'email',
    to: 'ada@example.test',
    template: 'captcha',
    locale: 'en',
    variables: { code: '738291' },
    subject: 'Your code',
    text: 'Your code is 738291.',
    html: '<p>Your code is <b>738291</b>.</p>',
  },
  expected,
} satisfies Conformance
