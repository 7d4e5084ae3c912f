/**
 * One template in one channel and locale.
 *
 * Variables are strict: a template names its variables, and the API refuses a request that lacks one. So no rendered text
 * has a gap. Values are data: text contains them unchanged, HTML escapes them, and no value is interpreted.
 *
 * An SMS may end with the line `@shop.example #{{code}}`, or with ` @frame.example` behind it. Browsers on that site then
 * offer to fill in the code (WebOTP).
 * It works only as the last line in this form, so any other place or form is a mistake.
 */
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Handlebars from 'handlebars'
import type { Channel } from '../base/channel.ts'
import { channelFacts } from '../recipient/channels.ts'
import { isLinkPart, lineOfBareLink, withLink, withoutLink } from './link-parts.ts'

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
  /** True if it shows the link of a code. */
  showsLink?: boolean
  render(variables: Readonly<Record<string, string>>): Rendered
}

/** By channel and edition. */
export type Variants = ReadonlyMap<Channel, Map<string, Variant>>

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
  checkLinkParts(sources)
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

/** `showsLink`: false for the texts of a channel that can't open one. */
export function createVariant(
  sources: Readonly<Record<string, string>>,
  showsLink = true,
): Variant {
  const variables = new Set<string>()
  const parts = Object.entries(sources).map(([part, text]) => {
    for (const name of variablesOf(text)) variables.add(name)
    const isHtml = part === 'html'
    const options = {
      strict: true,
      noEscape: !isHtml,
      knownHelpersOnly: true,
      knownHelpers: noHelpers,
    }
    const source = Handlebars.parse(text)
    const fill = Handlebars.compile(withLink(source), options)
    const fillWithoutLink = Handlebars.compile(withoutLink(source), options)
    const written = part === 'listUnsubscribe' ? encoded : isHtml ? withPlainLink : unchanged
    const render = (values: Values) =>
      (values.link && showsLink ? fill : fillWithoutLink)(own(written(values)))
    return [part, render] as const
  })
  const [path = ''] = (sources.listUnsubscribe ?? '').split(/[?#]/)
  return {
    variables,
    pathVariables: new Set(variablesOf(path)),
    showsLink: needsLink(variables) || Object.values(sources).some(hasLinkPart),
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

/** Only a template with `{{code}}` is sent with a link. */
function checkLinkParts(sources: Readonly<Record<string, string>>): void {
  const texts = Object.values(sources)
  if (texts.some((text) => variablesOf(text).includes('code'))) return
  if (texts.some(hasLinkPart)) {
    throw new Error('{{#link}} needs {{code}} in the same message')
  }
}

/** A message without a code has no link of Postern's: there, `{{link}}` is a variable of the caller. */
const needsLink = (variables: ReadonlySet<string>) => variables.has('code') && variables.has('link')

/** The place of `{{link}}` in each of its files where the message needs a link. */
export const bareLinksOf = ({ variables }: Variant, folder: string, files: readonly string[]) =>
  files.flatMap((name) => {
    const path = join(folder, name)
    const line = needsLink(variables) ? lineOfBareLink(readText(path)) : undefined
    return line === undefined ? [] : [`${path}:${line}`]
  })

const hasLinkPart = (text: string) => Handlebars.parse(text).body.some(isLinkPart)

/** Removes Handlebars' helpers. Otherwise `{{log}}` would call one instead of naming a variable. */
const noHelpers = Object.fromEntries(
  Object.keys(Handlebars.helpers).map((name) => [name, false]),
) as unknown as NonNullable<CompileOptions['knownHelpers']>

const encoded = (values: Values) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, encodeURIComponent(value)]),
  )

const unchanged = (values: Values) => values

/** HTML without Handlebars' `&#x3D;` in the link. An address without spaces can't end an attribute. */
const withPlainLink = (values: Values): Record<string, unknown> =>
  values.link && /^[!-~]+$/.test(values.link)
    ? { ...values, link: new Handlebars.SafeString(escaped(values.link)) }
    : values

const escaped = (text: string) => Handlebars.escapeExpression(text).replaceAll('&#x3D;', '=')

type Values = Readonly<Record<string, string>>

/** An object without a prototype. Otherwise `{{constructor}}` would have a value. */
function own(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.assign(Object.create(null), values)
}

const variableName = /^[a-zA-Z][a-zA-Z0-9_]{0,31}$/

/**
 * Only plain `{{name}}` and `{{#link}}` are allowed, because a template with logic could not be checked at start. The link is
 * no variable of the part that is shown only with it.
 */
const variablesOf = (source: string): string[] =>
  Handlebars.parse(source).body.flatMap((node) =>
    isLinkPart(node)
      ? plainVariables(node.program.body).filter((name) => name !== 'link')
      : plainVariables([node]),
  )

function plainVariables(nodes: readonly hbs.AST.Statement[]): string[] {
  return nodes.flatMap((node) => {
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
      throw new Error(
        `line ${node.loc.start.line}: only plain {{variables}} and {{#link}} are allowed`,
      )
    return [path.original]
  })
}
