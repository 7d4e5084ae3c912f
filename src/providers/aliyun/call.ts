/** Settings, texts and calls that Dysmsapi and Dypnsapi share. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { parseObject } from '../../base/json.ts'
import type { Http } from '../http-provider.ts'
import type { Message, SendResult } from '../provider.ts'
import { senderByCountry } from '../sender.ts'
import { type AliyunKey, signAcs3 } from '../signatures.ts'
import { findVendorTemplate, vendorTemplates } from '../vendor-templates.ts'
import { resultOfCode } from './errors.ts'

const template = z.union([
  /** A text alone: a code is sent as `code`, and a notice with its variables under their own names. */
  z.string().min(1),
  z.strictObject({
    id: z.string().min(1),
    /** Postern's variables by the names of Aliyun's variables. */
    params: z.record(z.string().min(1), z.string().min(1)).optional(),
    signName: z.string().min(1).optional(),
  }),
])

export const aliyunSettings = z.strictObject({
  accessKeyId: z.string().min(1),
  accessKeySecret: z.string().min(1),
  signName: senderByCountry(z.string().min(1)),
  templates: vendorTemplates(template),
  /** Give Aliyun a receipt address with this value as `?token=`. Without it, receipts are refused. */
  receiptToken: z.string().min(16).optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://dysmsapi.aliyuncs.com'),
})

export type AliyunSettings = z.infer<typeof aliyunSettings>

export const noTemplate: SendResult = {
  kind: 'rejected',
  detail: 'aliyun: no template id for this template',
}

/** The approved text with the message's variables, as parameters of a call. Undefined without a text for the template. */
export function textOf(
  { templates }: Pick<AliyunSettings, 'templates'>,
  message: Message,
  sign: string,
) {
  const found = findVendorTemplate(templates, message)
  if (!found) return undefined
  const chosen = typeof found === 'string' ? { id: found } : found
  return {
    SignName: chosen.signName ?? sign,
    TemplateCode: chosen.id,
    TemplateParam: JSON.stringify(paramsOf(chosen.params, message)),
  }
}

/** Without a list, a code is sent alone: a template for codes refuses every other variable. */
function paramsOf(params: Readonly<Record<string, string>> | undefined, { variables }: Message) {
  if (!params) return variables.code === undefined ? variables : { code: variables.code }
  const entries = Object.entries(params)
  return Object.fromEntries(entries.map(([theirs, ours]) => [theirs, variables[ours] ?? '']))
}

/**
 * Signed calls to Dysmsapi or Dypnsapi. A call returns the object in the answer, or a result if there is none or if it is
 * an error. Both have Aliyun's time if it is known.
 */
export function createAliyunCall(
  { ask, notUnderstood, clock }: Http,
  settings: AliyunKey & { readonly endpoint: string },
) {
  const { origin, host } = new URL(settings.endpoint)

  return async (action: string, query: Record<string, string>, signal: AbortSignal) => {
    const request = { host, query, action, version: '2017-05-25' }
    const signed = signAcs3({ ...request, atMs: clock(), nonce: randomUUID() }, settings)
    const url = `${origin}/?${signed.query}`
    const { result, answer } = await ask({ url, headers: signed.headers, body: '' }, signal)
    if (result) return { result }
    const object = parseObject(answer.body)
    const atMs = Date.parse(answer.headers.date ?? '')
    if (object?.Code === 'OK') return { answer: object, atMs }
    return { result: resultOfCode(object?.Code, object?.Message) ?? notUnderstood(answer), atMs }
  }
}
