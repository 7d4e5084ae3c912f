/** SMS of this file that carriers block (problems) or change (warnings), by the rules of the countries of its routes. */
import { join } from 'node:path'
import { z } from 'zod'
import { isObject } from '../base/json.ts'
import { checkRoutes, type RouteFinding, withoutWebOtp } from '../sms-rules/index.ts'
import type { FileProblem } from './located-yaml.ts'
import { type ProviderEntry, policyFileSchema, type Route } from './policy-schema.ts'
import { sendersIn } from './senders-in.ts'

export interface TemplateTexts {
  /** The files and lines of each `{{link}}` that needs a link. */
  readonly bareLinks: readonly string[]
  has(template: string): boolean
  readonly names: readonly string[]
  isOfPlugin(template: string): boolean
  /** The text of each SMS of these templates. `other` writes variables besides the code and its time. */
  smsTexts(
    code: { length: number; ttlMs: number; links: ReadonlyMap<string, string> },
    other: (name: string) => string,
    names: readonly string[],
  ): { template: string; locale: string; country: string | undefined; text: string }[]
}

const { senders, code, recipients, links } = policyFileSchema.shape
const sections = z.object({ senders, code, recipients, links })

interface Given {
  readonly raw: unknown
  readonly routes: readonly { path: readonly (string | number)[]; route: Route }[]
  readonly providers: ReadonlyMap<string, ProviderEntry>
  readonly templates: TemplateTexts
  readonly folder: string
}

export function carrierProblems(given: Given): FileProblem[] {
  const { providers, templates } = given
  const { data } = sections.safeParse(given.raw)
  if (!data) return []
  const { length, ttl: ttlMs } = data.code
  const ofFolder = templates.names.filter((name) => !templates.isOfPlugin(name))
  const all = templates.smsTexts(
    { length, ttlMs, links: data.links },
    (name) => `{{${name}}}`,
    ofFolder,
  )
  const ways = given.routes.flatMap(({ path, route: { match, use } }) =>
    use.flatMap(({ provider }) => {
      const { settings = {} } = providers.get(provider) ?? {}
      const sent = path[1] === 'sms' ? sendersIn(settings, match.country) : undefined
      const { senderId, messagingServiceSid: service } = settings
      // Other kinds leave sender and text to the vendor.
      if (!sent || !(sent.isSet || typeof service === 'string')) return []
      const texts = all.filter(({ template }) => match.template?.includes(template) ?? true)
      return { path, provider, ...sent, texts: senderId ? [] : texts }
    }),
  )
  const routes = ways.flatMap(({ provider, senders, texts }) =>
    senders
      // With a colon it is an address of another channel.
      .filter(({ sender }) => !sender?.includes(':'))
      .map(({ country, sender }) => ({
        ...{ provider, sender, countries: [country] },
        texts: editionsFor(country, texts),
      })),
  )
  const found = checkRoutes(routes, data.senders, (country, text) =>
    data.recipients.withoutWebOtp.includes(country) ? withoutWebOtp(text) : text,
  )
  const unchecked = (named: string) =>
    `without match.country, its SMS${named} are checked for the rules of no country`
  return [
    ...Object.entries(data.senders).flatMap(([name, byCountry]) => {
      const path = ['senders', name]
      if (!providers.has(name)) return [{ path, message: `there is no provider "${name}"` }]
      return Object.entries(byCountry).flatMap(([country, filed]) =>
        Object.keys(filed.templates)
          .filter((one) => !templates.has(one))
          .map((one) => ({
            path: [...path, country, 'templates', one],
            message: `there is no template "${one}"`,
          })),
      )
    }),
    ...ways.flatMap(({ path, isOpen, senders }) => {
      const message = unchecked(
        senders.length > 0 ? ' to countries that its sender does not name' : '',
      )
      return isOpen ? [{ path, message, isWarning: true }] : []
    }),
    ...found.map((finding) => problemOf(finding, given)),
  ]
}

type Texts = ReturnType<TemplateTexts['smsTexts']>

/** The texts for numbers of a country. An edition for the country takes the place of the one for all. */
function editionsFor(country: string, texts: Texts): Texts {
  const isReplaced = ({ template, locale }: Texts[number]) =>
    texts.some((each) => each.template === template && each.locale === `${locale}.${country}`)
  return texts.filter((each) => each.country === country || (!each.country && !isReplaced(each)))
}

const settingOf = { sender: 'registered', template: 'templates', link: 'links' }

function problemOf(finding: RouteFinding, { providers, folder }: Given): FileProblem {
  const { provider, country, of, wants, line = 1, severity, source, read } = finding
  const setting =
    wants && ` If it is registered, name it in senders.${provider}.${country}.${settingOf[wants]}.`
  const { from, senderId } = providers.get(provider)?.settings ?? {}
  const byCountry = from ?? senderId
  const entry = isObject(byCountry) && [Object.hasOwn(byCountry, country) ? country : 'default']
  return {
    path: ['providers', provider, from ? 'from' : 'senderId', ...(entry || [])],
    place: of && `${join(folder, of.template, `sms.${of.locale}.txt`)}:${line}`,
    message: `${finding.message}${setting ?? ''} (${source}, ${read})`,
    isWarning: severity === 'warning',
  }
}
