import { basicLogin, type HttpCall } from '../../base/http-client.ts'
import type { HttpSettings } from './settings.ts'
import { compileText, compileTree, hasDots, type Values } from './template.ts'

/** A function that makes the request for a message. Undefined if a value would lead to another path. */
export function createRequestOf(settings: HttpSettings): (values: Values) => HttpCall | undefined {
  const { method, basic, json, form, query } = settings
  const address = compileText(settings.url, encodeURIComponent)
  const [headers, fields, tree] = [settings.headers, form ?? query ?? {}, json].map(compileTree)
  const fixed = {
    ...(json === undefined ? {} : { 'content-type': 'application/json' }),
    ...(form === undefined ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
    ...(basic === undefined ? {} : { authorization: basicLogin(basic.user, basic.password) }),
  }

  return (values) => {
    const text = address(values) ?? ''
    if (hasDots(text)) return undefined
    const filled = new URLSearchParams(pairsIn(fields?.(values)))
    // Some servers read a + of a query as a plus.
    const search = query && filled.toString().replaceAll('+', '%20')
    const body = json === undefined ? form && filled.toString() : JSON.stringify(tree?.(values))
    return {
      method,
      url: search ? `${text}${text.includes('?') ? '&' : '?'}${search}` : text,
      headers: { ...fixed, ...headerLines(headers?.(values)) },
      ...(body === undefined ? {} : { body }),
    }
  }
}

/** A field with several values is repeated. */
const pairsIn = (fields: unknown): [string, string][] =>
  Object.entries(fields as object).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, String(one)]),
  )

/** A line break would begin another header. Letters outside ASCII travel as UTF-8. */
const headerLines = (headers: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers as Record<string, string | undefined>).flatMap(([name, value]) => {
      const line = value?.replaceAll(/\p{Cc}+/gu, ' ').trim()
      if (line === undefined) return []
      return [[name.toLowerCase(), Buffer.from(line).toString('latin1')]]
    }),
  )
