import { textFor } from '../../base/by-country.ts'
import { isObject } from '../../base/json.ts'
import { createAliyunCall } from '../aliyun/call.ts'
import { noTemplate, textOf } from '../aliyun/text.ts'
import { createHttpProvider } from '../http-provider.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted } from '../send-result.ts'
import { hasSenderFor, noSender } from '../sender.ts'
import { type AliyunPnvsSettings, aliyunPnvsSettings } from './settings.ts'

/**
 * Codes by SMS through Alibaba Cloud's number verification: Dypnsapi of 2017-05-25, SendSmsVerifyCode. Sign name and
 * template come with the service, so it needs no business licence. Alibaba Cloud could also draw and check codes.
 * Postern does both itself, and only gives it the code to send.
 */
export const aliyunPnvs: ProviderKind<AliyunPnvsSettings> = {
  kind: 'aliyun-pnvs',
  channels: ['sms'],
  settings: aliyunPnvsSettings,
  serves: ({ signName }, country) => hasSenderFor(signName, country),
  create: createAliyunPnvs,
}

/** Numbers of mainland China. The service reaches no others. */
const mainland = /^\+86(1\d{10})$/

function createAliyunPnvs(
  name: string,
  settings: AliyunPnvsSettings,
  deps: ProviderDeps,
): Provider {
  const http = createHttpProvider(aliyunPnvs, name, deps)
  const call = createAliyunCall(http, settings, deps.clock)

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const number = mainland.exec(message.to)?.[1]
    if (!number) return { kind: 'rejected', detail: 'aliyun: not a number of mainland China' }
    const sign = textFor(settings.signName, message.country ?? '')
    if (sign === undefined) return noSender('aliyun')
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
  }

  return http.providerWith({ send })
}
