import type { z } from 'zod'
import { aliyunSettings } from '../aliyun/settings.ts'

const { endpoint } = aliyunSettings.shape

export const aliyunPnvsSettings = aliyunSettings.omit({ receiptToken: true }).extend({
  endpoint: endpoint.unwrap().default('https://dypnsapi.aliyuncs.com'),
})

export type AliyunPnvsSettings = z.infer<typeof aliyunPnvsSettings>
