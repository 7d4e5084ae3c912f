import { isObject } from '../../base/json.ts'
import { aliyunSettings, createAliyunCall, noTemplate, textOf } from '../aliyun/call.ts'
import { defineHttpKind } from '../http-provider.ts'
import { accepted } from '../send-result.ts'

const settings = aliyunSettings.omit({ receiptToken: true }).extend({
  endpoint: aliyunSettings.shape.endpoint.unwrap().default('https://dypnsapi.aliyuncs.com'),
})

/** Numbers of mainland China. The service reaches no others. */
const mainland = /^\+86(1\d{10})$/

/**
 * Codes by SMS through Alibaba Cloud's number verification: Dypnsapi of 2017-05-25, SendSmsVerifyCode. Sign name and
 * template come with the service, so it needs no business licence. Alibaba Cloud could also draw and check codes.
 * Postern does both itself, and only gives it the code to send.
 */
export const aliyunPnvs = defineHttpKind({
  kind: 'aliyun-pnvs',
  channels: ['sms'],
  settings,
  senderOf: ({ signName }) => signName,
  connect(http, settings) {
    const call = createAliyunCall(http, settings)
    return {
      async send(message, signal, sign = '') {
        const number = mainland.exec(message.to)?.[1]
        if (!number) return { kind: 'rejected', detail: 'aliyun: not a number of mainland China' }
        const text = textOf(settings, message, sign)
        if (!text) return noTemplate
        const query = {
          PhoneNumber: number,
          CountryCode: '86',
          ...text,
          OutId: message.noticeId,
          // Seconds between two codes, 60 by default. The limits are Postern's.
          Interval: '1',
        }
        const { result, answer } = await call('SendSmsVerifyCode', query, signal)
        if (result) return result
        return accepted(isObject(answer.Model) ? answer.Model.BizId : undefined)
      },
    }
  },
})
