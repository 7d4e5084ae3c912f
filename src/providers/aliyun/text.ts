import type { Message, SendResult } from '../provider.ts'
import { findVendorTemplate } from '../vendor-templates.ts'
import type { AliyunSettings } from './settings.ts'

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
