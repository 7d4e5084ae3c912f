/**
 * Messages: `templates/<template>/<channel>.<locale>.txt`, and beside a mail's text its
 * `email.<locale>.html`. A mail's text begins with its subject line, perhaps a line `List-Unsubscribe: https://…`, and an
 * empty line.
 *
 * Everything is read, compiled and checked once, at start. Variables are strict: a template names what
 * it needs, a request that lacks one is refused at the door, and rendering can't leave a hole. Values
 * are data: text takes them as they are, HTML escapes them, and nothing in them is ever interpreted.
 *
 * An SMS may end with the line `@shop.example #{{code}}`: browsers on that site then offer to fill in
 * the code (WebOTP). It works in no other place and form, so any other is a mistake.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Handlebars from 'handlebars'
import type { Channel } from '../base/channel.ts'
import { measureSms, type SmsLength } from '../base/sms-length.ts'

export interface Rendered {
  subject?: string
  text: string
  html?: string
  /** An address of `https:` or `mailto:`, as the header of that name has it between < and >. */
  listUnsubscribe?: string
}

/** One template in one channel and locale. */
interface Variant {
  variables: ReadonlySet<string>
  render(variables: Readonly<Record<string, string>>): Rendered
}

/** Of one template: by locale. */
type Variants = Record<Channel, Map<string, Variant>>

export type Templates = ReturnType<typeof loadTemplates>

/** Throws an Error that lists every problem with its file. */
export function loadTemplates(folder: string) {
  const problems: string[] = []
  const variants = new Map<string, Variants>()
  const digest = createHash('sha256')

  for (const template of listFolder(folder, problems)) {
    const files = listFolder(join(folder, template), problems)
    const found: Variants = { sms: new Map(), email: new Map() }
    for (const file of files) {
      const name = /^(sms|email)\.([a-z]{2}(?:-[A-Z]{2})?)\.(txt|html)$/.exec(file)
      if (!name) problems.push(`${template}/${file}: is not named <sms|email>.<locale>.<txt|html>`)
      else if (name[3] === 'txt') {
        const channel = name[1] as Channel
        const locale = name[2] as string
        const htmlFile = `${channel}.${locale}.html`
        try {
          const hasHtml = files.includes(htmlFile)
          const sources = readSources(join(folder, template), channel, locale, hasHtml)
          digest.update(JSON.stringify([template, channel, locale, sources]))
          found[channel].set(locale, createVariant(sources))
        } catch (error) {
          problems.push(`${template}/${file}: ${(error as Error).message}`)
        }
      } else if (!files.includes(file.replace(/html$/, 'txt'))) {
        problems.push(`${template}/${file}: has no text part beside it`)
      }
    }
    variants.set(template, found)
  }
  if (problems.length > 0) throw new Error(`templates have problems:\n${problems.join('\n')}`)

  const find = (template: string, channel: Channel, locale: string) =>
    variants.get(template)?.[channel].get(locale)

  return {
    /** Another one as soon as any variant says something else. */
    digest: digest.digest('hex'),

    names: [...variants.keys()],

    has: (template: string) => variants.has(template),

    /** The locales a template has for a channel; empty when it is not made for that channel. */
    locales(template: string, channel: Channel): string[] {
      return [...(variants.get(template)?.[channel].keys() ?? [])]
    },

    /**
     * The locale of the variant nearest to `wanted` (RFC 4647 look-up: whole, then with one subtag less
     * at a time), else of the default one: English, or the template's first. Undefined only when the
     * template is not made for that channel.
     */
    findLocale(template: string, channel: Channel, wanted = ''): string | undefined {
      const available = this.locales(template, channel)
      for (let range = languageRange(wanted); range !== ''; range = shorterRange(range)) {
        const locale = available.find((each) => each.toLowerCase() === range)
        if (locale !== undefined) return locale
      }
      return available.find((locale) => locale === defaultLocale) ?? available[0]
    },

    /** Whether any variant of the template, of any channel, has this variable. */
    uses(template: string, variable: string): boolean {
      const { sms, email } = variants.get(template) ?? { sms: new Map(), email: new Map() }
      const all: Variant[] = [...sms.values(), ...email.values()]
      return all.some(({ variables }) => variables.has(variable))
    },

    /** The variables a variant needs. */
    variables(template: string, channel: Channel, locale: string): ReadonlySet<string> {
      return find(template, channel, locale)?.variables ?? new Set()
    },

    /** What each SMS takes at least: with the code in it and every other variable empty. */
    smsLengths(codeLength: number): ({ template: string; locale: string } & SmsLength)[] {
      return [...variants].flatMap(([template, all]) =>
        [...all.sms].map(([locale, { variables, render }]) => {
          const values = Object.fromEntries([...variables].map((name) => [name, '']))
          if ('code' in values) values.code = '0'.repeat(codeLength)
          return { template, locale, ...measureSms(render(values).text) }
        }),
      )
    },

    /** Throws when the variant does not exist or a variable is missing; the door has checked both. */
    render(
      template: string,
      channel: Channel,
      locale: string,
      variables: Readonly<Record<string, string>>,
    ): Rendered {
      const variant = find(template, channel, locale)
      if (!variant) throw new Error(`there is no template ${template}/${channel}.${locale}`)
      const missing = [...variant.variables].filter((name) => !Object.hasOwn(variables, name))
      if (missing.length > 0) throw new Error(`${template}/${channel}: no value for ${missing}`)
      return variant.render(variables)
    },
  }
}

const defaultLocale = 'en'

/** Tags are shorter; looking up every part of one of 16 kB would be quadratic work. */
const maxRangeLength = 64

/** Some platforms write zh_CN. */
function languageRange(wanted: string): string {
  return wanted.slice(0, maxRangeLength).toLowerCase().replaceAll('_', '-')
}

/** Without its last subtag, and without the single letter before it, which only announces it. */
function shorterRange(range: string): string {
  return range.slice(0, Math.max(0, range.lastIndexOf('-'))).replace(/-[a-z0-9]$/, '')
}

function listFolder(folder: string, problems: string[]): string[] {
  try {
    return readdirSync(folder).sort()
  } catch (error) {
    problems.push(`${folder} can not be read (${(error as { code?: string }).code})`)
    return []
  }
}

function readSources(
  folder: string,
  channel: Channel,
  locale: string,
  hasHtml: boolean,
): Record<string, string> {
  const source = readFileSync(join(folder, `${channel}.${locale}.txt`), 'utf8').trimEnd()
  const sources: Record<string, string> = { text: source }
  if (channel === 'email') {
    const match = /^Subject: (.+)\n(?:List-Unsubscribe: (.+)\n)?\n([\s\S]+)$/.exec(source)
    if (!match) throw new Error('begins with "Subject: …" and an empty line')
    sources.subject = match[1] as string
    sources.text = match[3] as string
    if (match[2] !== undefined) sources.listUnsubscribe = match[2]
    if (hasHtml) sources.html = readFileSync(join(folder, `${channel}.${locale}.html`), 'utf8')
  }

  if (channel === 'sms') checkWebOtp(source)
  checkUnsubscribe(sources)
  return sources
}

function createVariant(sources: Readonly<Record<string, string>>): Variant {
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
  return {
    variables,
    render: (values) =>
      Object.fromEntries(
        parts.map(([part, render]) => [part, render(values)]),
      ) as unknown as Rendered,
  }
}

function checkWebOtp(source: string): void {
  const lines = source.split('\n')
  lines.forEach((line, index) => {
    if (!line.startsWith('@')) return
    const isLast = index > 0 && index === lines.length - 1
    if (!isLast || !/^@[a-z0-9.-]+ #\{\{code\}\}$/.test(line)) {
      throw new Error(`line ${index + 1}: a WebOTP line is the last one, "@shop.example #{{code}}"`)
    }
  })
}

/** Callers choose what stands in the variables, so they must not be able to choose where the link leads. */
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
      'List-Unsubscribe: nobody subscribes to a code, and mail servers take it for advertising',
    )
  }
}

/** Without these, `{{log}}` would call Handlebars' own helper instead of naming a variable. */
const noHelpers = Object.fromEntries(
  Object.keys(Handlebars.helpers).map((name) => [name, false]),
) as unknown as NonNullable<CompileOptions['knownHelpers']>

/** As parts of an address. */
const encoded = (values: Values) =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, encodeURIComponent(value)]),
  )

type Values = Readonly<Record<string, string>>

/** Without a prototype, so that a missing `{{constructor}}` is missing. */
function own(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.assign(Object.create(null), values)
}

/** What a request may call a variable. */
const variableName = /^[a-zA-Z][a-zA-Z0-9_]{0,31}$/

/** Plain `{{name}}` only: a template that could decide things could not be checked at start. */
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
      mustache.params.length === 0
    if (!isPlain)
      throw new Error(`line ${node.loc.start.line}: only plain {{variables}} are allowed`)
    return [path.original]
  })
}
