import { type Conformance, expectedOverHttp } from '../conformance.ts'
import { startAliyunFarEnd } from '../far-ends/aliyun.ts'
import { conformance as aliyun, key } from './aliyun.ts'

export { aliyunPnvs as default } from '../../../src/providers/aliyun-pnvs/index.ts'

export const entry = {
  accessKeyId: key.id,
  accessKeySecret: key.secret,
  signName: '速通互联验证码',
  templates: { captcha: { zh: { id: '100001', params: { code: 'code', min: 'minutes' } } } },
}

export const conformance = {
  startFarEnd: () => startAliyunFarEnd(key),
  settings: (port) => ({ ...entry, endpoint: `http://127.0.0.1:${port}` }),
  secrets: [key.secret],
  message: { ...aliyun.message, variables: { code: '738291', minutes: 'five' } },
  expected: expectedOverHttp,
} satisfies Conformance
