import { type Conformance, codeBySms, expectedOverHttp } from '../conformance.ts'
import { startWhatsappFarEnd } from '../far-ends/whatsapp.ts'

export { whatsapp as default } from '../../../src/providers/whatsapp/index.ts'

export const entry = {
  phoneNumberId: '106540352242922',
  accessToken: 'test-access-token',
  appSecret: 'test-app-secret',
  verifyToken: 'test-verify-token',
  templates: {
    captcha: {
      en: { name: 'verification_code', language: 'en_US' },
      zh: { name: 'verification_code', language: 'zh_CN' },
    },
  },
}

export const conformance = {
  startFarEnd: () => startWhatsappFarEnd(entry.phoneNumberId, entry.accessToken),
  settings: (port) => ({ ...entry, endpoint: `http://127.0.0.1:${port}/v23.0` }),
  secrets: [entry.accessToken, entry.appSecret, entry.verifyToken],
  message: { ...codeBySms, channel: 'whatsapp', locale: 'en-GB' },
  expected: expectedOverHttp,
} satisfies Conformance
