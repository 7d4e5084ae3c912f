/**
 * Templates: `templates/<template>/<channel>.<locale>.txt`, for mail also `email.<locale>.html`. An edition for numbers of
 * one country has the country behind the locale: `sms.en.IN.txt`. The text of a mail begins with its subject line, an
 * optional line `List-Unsubscribe: https://…`, and an empty line. A channel without a text in a locale has the text of its
 * `textsOf`. All files are read, compiled and checked once, at start.
 */
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Channel, channels } from '../base/channel.ts'
import { defaultLocale, nearestOrDefault } from '../base/nearest-locale.ts'
import { channelFacts } from '../recipient/channels.ts'
import { partsOf, readFileName } from './edition-name.ts'
import { createSmsTexts } from './sms-texts.ts'
import {
  bareLinksOf,
  createVariant,
  type Rendered,
  readSources,
  type Variant,
  type Variants,
  withoutWebOtpLine,
} from './template-variant.ts'

/** By the name of the edition. */
const variantsBy = (ofChannel: (channel: Channel) => Map<string, Variant>): Variants =>
  new Map(channels.map((channel) => [channel, ofChannel(channel)]))

export type Templates = ReturnType<typeof createTemplates>

/** Templates of plugins, by name: one variant per channel, for every locale. */
export type GivenTemplates = Readonly<Record<string, Readonly<Partial<Record<Channel, Variant>>>>>

/** `given`: templates of plugins. Returns all problems, each with the path of its file, if there are any. */
export function readTemplates(
  folder: string,
  given: GivenTemplates = {},
): Templates | { problems: string[] } {
  const problems: string[] = []
  const report = (path: string, message: string) =>
    problems.push(`${resolve(folder, path)}: ${message}`)
  const variants = new Map<string, Variants>()
  const bareLinks: string[] = []
  const digest = createHash('sha256')

  for (const template of listFolder(folder, problems)) {
    /** The texts that channels without a text have, by channel and locale. */
    const forOthers = variantsBy(() => new Map())
    const files = listFolder(join(folder, template), problems)
    const found = variantsBy(() => new Map())
    for (const file of files) {
      const named = readFileName(file)
      if ('problem' in named) {
        report(`${template}/${file}`, named.problem)
        continue
      }
      const { channel, edition, ending } = named
      if (ending === 'txt') {
        const htmlFile = `${channel}.${edition}.html`
        try {
          const hasHtml = files.includes(htmlFile)
          const sources = readSources(join(folder, template), channel, edition, hasHtml)
          digest.update(JSON.stringify([template, channel, edition, sources]))
          const variant = createVariant(sources)
          found.get(channel)?.set(edition, variant)
          forOthers.get(channel)?.set(edition, createVariant(withoutWebOtpLine(sources), false))
          const read = sources.html === undefined ? [file] : [file, htmlFile]
          bareLinks.push(...bareLinksOf(variant, resolve(folder, template), read))
        } catch (error) {
          report(`${template}/${file}`, (error as Error).message)
        }
      } else if (!files.includes(file.replace(/html$/, 'txt'))) {
        report(`${template}/${file}`, 'has no text part beside it')
      }
    }
    variants.set(template, withTextsOfOthers(found, forOthers))
  }
  for (const [template, byChannel] of Object.entries(given)) {
    const inAnyLocale = (channel: Channel) => {
      const variant = byChannel[channel] ?? byChannel[channelFacts(channel).textsOf ?? channel]
      return new Map(variant ? [[defaultLocale, variant]] : [])
    }
    if (variants.has(template)) report(template, "is the name of a plugin's template")
    variants.set(template, variantsBy(inAnyLocale))
  }
  if (problems.length > 0) return { problems }
  return createTemplates(variants, digest.digest('hex'), given, bareLinks)
}

/** Adds the texts of the channel's `textsOf` in the locales for which the channel has no text. */
const withTextsOfOthers = (found: Variants, forOthers: Variants): Variants =>
  variantsBy((channel) => {
    const { textsOf } = channelFacts(channel)
    const own = [...(found.get(channel) ?? [])]
    const locales = new Set(own.map(([edition]) => partsOf(edition).locale))
    const ofOther = textsOf === undefined ? [] : [...(forOthers.get(textsOf) ?? [])]
    return new Map([
      ...ofOther.filter(([edition]) => !locales.has(partsOf(edition).locale)),
      ...own,
    ])
  })

/** `digest`: a hash that changes with any text of any template. */
function createTemplates(
  variants: ReadonlyMap<string, Variants>,
  digest: string,
  given: GivenTemplates,
  bareLinks: readonly string[],
) {
  /** The edition of this locale for the country, otherwise for all countries. Throws if there is none. */
  function edition(template: string, channel: Channel, locale: string, country = ''): Variant {
    const editions = variants.get(template)?.get(channel)
    const found = editions?.get(`${locale}.${country}`) ?? editions?.get(locale)
    if (!found) throw new Error(`there is no template ${template}/${channel}.${locale}`)
    return found
  }

  return {
    digest,

    /** The files and lines of each message with a code where `{{link}}` stands outside `{{#link}}`. */
    bareLinks,

    names: [...variants.keys()],

    showsLinks: [...variants.values()]
      .flatMap((byChannel) => [...byChannel.values()].flatMap((byLocale) => [...byLocale.values()]))
      .some(({ showsLink }) => showsLink),

    has: (template: string) => variants.has(template),

    /** True for a template of a plugin. It may send any text. */
    isOfPlugin: (template: string) => Object.hasOwn(given, template),

    /** Locales of a template for a channel and country; empty if it has no text for them. */
    locales(template: string, channel: Channel, country = ''): string[] {
      const editions = [...(variants.get(template)?.get(channel)?.keys() ?? [])].map(partsOf)
      const fitting = editions.filter((each) => [undefined, country].includes(each.country))
      return [...new Set(fitting.map(({ locale }) => locale))]
    },

    /**
     * The locale nearest to `wanted`. Otherwise the default: English, or the first locale of the template. Undefined only
     * if the template has no text for the channel and country.
     */
    findLocale(template: string, channel: Channel, wanted = '', country = ''): string | undefined {
      return nearestOrDefault(wanted, this.locales(template, channel, country))
    },

    /** True if the template uses this variable in any channel and locale. */
    uses(template: string, variable: string): boolean {
      const byChannel = [...(variants.get(template)?.values() ?? [])]
      const all = byChannel.flatMap((byLocale) => [...byLocale.values()])
      return all.some(({ variables }) => variables.has(variable))
    },

    edition,

    ...createSmsTexts(variants),

    /** Throws if the variant or a variable is missing. The API has checked both before. */
    render(
      template: string,
      channel: Channel,
      locale: string,
      variables: Readonly<Record<string, string>>,
      country = '',
    ): Rendered {
      const variant = edition(template, channel, locale, country)
      const missing = [...variant.variables].filter((name) => !Object.hasOwn(variables, name))
      if (missing.length > 0) throw new Error(`${template}/${channel}: no value for ${missing}`)
      return variant.render(variables)
    },
  }
}

/**
 * Without hidden names: editors and file managers make such files, and Kubernetes puts `..data` into the folder of a
 * ConfigMap.
 */
function listFolder(folder: string, problems: string[]): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => !name.startsWith('.'))
      .sort()
  } catch (error) {
    problems.push(`${folder} cannot be read (${(error as { code?: string }).code})`)
    return []
  }
}
