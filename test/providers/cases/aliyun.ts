import { type Conformance, codeBySms, expectedOverHttp } from '../conformance.ts'
import { startAliyunFarEnd } from '../far-ends/aliyun.ts'

export { aliyun as default } from '../../../src/providers/aliyun/index.ts'

export const key = { id: 'test-key-id', secret: 'test-key-secret' }
export const entry = {
  accessKeyId: key.id,
  accessKeySecret: key.secret,
  signName: '阿里云测试',
  receiptToken: 'a-token-of-length',
  templates: {
    captcha: { zh: { id: 'SMS_1', params: { number: 'code' } }, en: 'SMS_2' },
    constructor: {},
  },
}

export const conformance = {
  startFarEnd: () => startAliyunFarEnd(key),
  settings: (port) => ({ ...entry, endpoint: `http://127.0.0.1:${port}` }),
  secrets: [key.secret, entry.receiptToken],
  message: { ...codeBySms, to: '+8613812345678', locale: 'zh-CN', text: '您的验证码是738291。' },
  expected: expectedOverHttp,
} satisfies Conformance
