import { type Conformance, codeBySms, expectedOverHttp } from '../conformance.ts'
import { startTencentFarEnd } from '../far-ends/tencent.ts'

export { tencent as default } from '../../../src/providers/tencent/index.ts'

export const key = { id: 'test-secret-id', secret: 'test-secret-key' }
export const entry = {
  secretId: key.id,
  secretKey: key.secret,
  sdkAppId: '1400006666',
  signName: '腾讯云测试',
  receiptToken: 'a-token-of-length',
  templates: { captcha: { zh: { id: '1110', params: ['code', 'minutes'] }, en: '1111' } },
}

export const conformance = {
  startFarEnd: () => startTencentFarEnd(key),
  settings: (port) => ({ ...entry, endpoint: `http://127.0.0.1:${port}` }),
  secrets: [key.secret, entry.receiptToken],
  message: {
    ...codeBySms,
    to: '+8618501234444',
    locale: 'zh',
    variables: { minutes: '05分', code: '738291' },
    text: '您的验证码是738291。',
  },
  expected: expectedOverHttp,
} satisfies Conformance
