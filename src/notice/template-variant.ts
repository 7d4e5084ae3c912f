/**
 * One template in one channel and locale.
 *
 * Variables are strict: a template names its variables, and the API refuses a request that lacks one. So no rendered text
 * has a gap. Values are data: text contains them unchanged, HTML escapes them, and no value is interpreted.
 *
 * An SMS may end with the line `@shop.example #{{code}}`, or with ` @frame.example` behind it. Browsers on that site then offer to fill in the code (WebOTP).
 * It works only as the last line in this form, so any other place or form is a mistake.
 */
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Handlebars from 'handlebars'
import type { Channel } from '../base/channel.ts'
import { channelFacts } from '../recipient/channels.ts'

export interface Rendered {
  subject?: string
  text: string
  html?: string
  /** An `https:` or `mailto:` address for the header List-Unsubscribe, without < and >. */
  listUnsubscribe?: string
}

export interface Variant {
  variables: ReadonlySet<string>
  /** Variables in the path of List-Unsubscribe. There, `..` as a value would lead to another path. */
  pathVariables?: ReadonlySet<string>
  render(variables: Readonly<Record<string, string>>): Rendered
}

/** Reads the parts of a message from its files. Throws an Error with the mistake in them. */
export function readSources(
  folder: string,
  channel: Channel,
  edition: string,
  hasHtml: boolean,
): Record<string, string> {
  const source = readText(join(folder, `${channel}.${edition}.txt`)).trimEnd()
  const sources: Record<string, string> = { text: source }
  const { parts, isSms } = channelFacts(channel)
  if (parts.includes('subject')) {
    const match = /^Subject: (.+)\n(?:List-Unsubscribe: (.+)\n)?\n([\s\S]+)$/.exec(source)
    if (!match) throw new Error('must begin with "Subject: …" and an empty line')
    sources.subject = match[1] as string
    sources.text = match[3] as string
    if (match[2] !== undefined) sources.listUnsubscribe = match[2]
    if (hasHtml && parts.includes('html'))
      sources.html = readText(join(folder, `${channel}.${edition}.html`))
  }
  if (sources.text?.trim() === '') throw new Error('is empty')
  if (isSms) checkWebOtp(source)
  checkUnsubscribe(sources)
  return sources
}

/**
 * Editors on Windows write a byte order mark and CRLF. A mark in an SMS would halve its room. A file in another encoding is
 * refused, because people would get a � for each of its special letters.
 */
function readText(path: string): string {
  const bytes = readFileSync(path)
  if (!isUtf8(bytes)) throw new Error('is not UTF-8; save it in this encoding')
  return bytes.toString().replaceAll('\ufeff', '').replaceAll('\r\n', '\n')
}

export function createVariant(sources: Readonly<Record<string, string>>): Variant {
  const variables = new Set<string>()
  const parts = Object.entries(sources).map(([part, text]) => {
    for (const name of variablesOf(text)) variables.add(name)
    const fill = Handlebars.compile(text, {
      strict: true,
      noEscape: part !== 'html',
      knownHelpersOnly: true,
      knownHelpers: noHelpers,
    })
    const isLink = part === 'listUnsubscribe'
    const render = (values: Values) => fill(own(isLink ? encoded(values) : values))
    return [part, render] as const
  })
  const [path = ''] = (sources.listUnsubscribe ?? '').split(/[?#]/)
  return {
    variables,
    pathVariables: new Set(variablesOf(path)),
    render: (values) =>
      Object.fromEntries(
        parts.map(([part, render]) => [part, render(values)]),
      ) as unknown as Rendered,
  }
}

/** The second host is the origin of a frame (https://wicg.github.io/sms-one-time-codes/#format). */
const webOtpLine = /^@[a-z0-9.-]+ #\{\{code\}\}( @[a-z0-9.-]+)?$/i

function checkWebOtp(source: string): void {
  const lines = source.split('\n')
  lines.forEach((line, index) => {
    if (!line.startsWith('@')) return
    const isLast = index > 0 && index === lines.length - 1
    if (!isLast || !webOtpLine.test(line)) {
      throw new Error(
        `line ${index + 1}: a WebOTP line must be the last one, "@shop.example #{{code}}"`,
      )
    }
  })
}

/** No browser reads the line in a text that goes by another channel than SMS. */
export function withoutWebOtpLine(
  sources: Readonly<Record<string, string>>,
): Record<string, string> {
  const { text = '' } = sources
  const lines = text.split('\n')
  const hasLine = webOtpLine.test(lines.at(-1) ?? '')
  return { ...sources, ...(hasLine ? { text: lines.slice(0, -1).join('\n').trimEnd() } : {}) }
}

/** Callers choose the values of variables, so a variable must not decide where the link leads. */
function checkUnsubscribe({ listUnsubscribe: link, ...others }: Readonly<Record<string, string>>) {
  if (link === undefined) return
  const url = URL.parse(link)
  const target = url?.protocol === 'https:' ? url.host : link.split('?')[0]
  const isAddress = url && ['https:', 'mailto:'].includes(url.protocol) && /^[!-~]+$/.test(link)
  if (!isAddress || target?.includes('{') || /[<>]/.test(link)) {
    throw new Error(
      'List-Unsubscribe: is one address, https://host/…{{variable}} or mailto:name@host?subject={{variable}}',
    )
  }
  if (Object.values(others).some((text) => variablesOf(text).includes('code'))) {
    throw new Error(
      'List-Unsubscribe: remove it. A code has no subscription, and mail servers would treat it as advertising',
    )
  }
}

/** Removes Handlebars' helpers. Otherwise `{{log}}` would call one instead of naming a variable. */
const noHelpers = Object.fromEntries(
  Object.keys(Handlebars.helpers).map((name) => [name, false]),
) as unknown as NonNullable<CompileOptions['knownHelpers']>

/** Encodes the values as parts of an address. */
const encoded = (values: Values) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, encodeURIComponent(value)]),
  )

type Values = Readonly<Record<string, string>>

/** An object without a prototype. Otherwise `{{constructor}}` would have a value. */
function own(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.assign(Object.create(null), values)
}

const variableName = /^[a-zA-Z][a-zA-Z0-9_]{0,31}$/

/** Only plain `{{name}}` is allowed, because a template with logic could not be checked at start. */
function variablesOf(source: string): string[] {
  return Handlebars.parse(source).body.flatMap((node) => {
    if (node.type === 'ContentStatement' || node.type === 'CommentStatement') return []
    const mustache = node as hbs.AST.MustacheStatement
    const path = mustache.path as hbs.AST.PathExpression | undefined
    const isPlain =
      node.type === 'MustacheStatement' &&
      path?.type === 'PathExpression' &&
      path.parts.length === 1 &&
      path.depth === 0 &&
      variableName.test(path.original) &&
      mustache.escaped &&
      mustache.params.length === 0 &&
      mustache.hash === undefined
    if (!isPlain)
      throw new Error(`line ${node.loc.start.line}: only plain {{variables}} are allowed`)
    return [path.original]
  })
}
