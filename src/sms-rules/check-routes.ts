/**
 * The rules that the routes of a service break: the senders of its providers and the texts of its templates, for the countries of
 * each route. A text is surely blocked only if no language of its template passes, so the others are warnings then. Where no
 * registration of a country is named, one may still exist, so its lack is a warning too.
 */
import { checkSms, type Finding } from './check.ts'
import { hasSender } from './text-parts.ts'

/** Registrations with the carriers of a country. */
export interface Registrations {
  /** The id of the business. With it, and without `registered`, its sender counts as registered too. */
  readonly entity?: string | undefined
  /** Senders. */
  readonly registered?: readonly string[] | undefined
  /** By the name of the template; `text` as it was registered. */
  readonly templates?: Readonly<Record<string, { readonly text?: string | undefined }>> | undefined
  /** Links and phone numbers in texts. */
  readonly links?: boolean | undefined
}

export interface Route {
  readonly provider: string
  /** Undefined if the vendor sends it by itself. */
  readonly sender?: string | undefined
  readonly countries: readonly string[]
  /** Every text that it may send, with a name for the language. Empty if the vendor has its texts. */
  readonly texts: readonly {
    readonly template: string
    readonly locale: string
    readonly text: string
  }[]
}

export interface RouteFinding extends Finding {
  readonly provider: string
  readonly country: string
  /** The text, for a finding of one. */
  readonly of?: { readonly template: string; readonly locale: string }
}

/** `registered`: by provider and country. `textIn` returns a text as it is sent to that country. */
export function checkRoutes(
  routes: readonly Route[],
  registered: Readonly<Record<string, Readonly<Record<string, Registrations>>>>,
  textIn = (_country: string, text: string) => text,
): RouteFinding[] {
  const found = routes.flatMap((route) =>
    route.countries.flatMap((country) => {
      const filed = registered[route.provider]?.[country]
      const which = { provider: route.provider, country }
      return [
        ...checkSender(route.sender, country, filed).map((finding) => ({ ...finding, ...which })),
        ...checkTexts(route, country, filed, textIn).map((finding) => ({ ...finding, ...which })),
      ]
    }),
  )
  // Two routes may have a country or a template in common.
  return [...new Map(found.map((finding) => [JSON.stringify(finding), finding])).values()]
}

/** Without registrations, what one would mend is not sure. */
const unsure = (found: Finding[], filed: Registrations | undefined): Finding[] =>
  found.map((each) => (filed || !each.wants ? each : { ...each, severity: 'warning' }))

function checkSender(sender: string | undefined, country: string, all: Registrations | undefined) {
  const { registered, entity } = all ?? {}
  const isFiled = registered ? hasSender(registered, sender ?? '') : entity !== undefined
  return unsure(checkSms({ country, sender, registered: { sender: isFiled } }), all)
}

function checkTexts(
  { sender, texts }: Route,
  country: string,
  all: Registrations | undefined,
  textIn: (country: string, text: string) => string,
) {
  const { templates = {}, links } = all ?? {}
  const names = [...new Set(texts.map(({ template }) => template))]
  return names.flatMap((template) => {
    const filed = Object.hasOwn(templates, template) ? templates[template] : undefined
    const ofForms = texts
      .filter((each) => each.template === template)
      .map(({ locale, text }) =>
        unsure(
          checkSms({
            ...{ country, sender, text: textIn(country, text), template: filed?.text },
            registered: { sender: true, template: filed !== undefined, link: links },
          }),
          all,
        )
          .filter(({ about }) => !about.startsWith('sender'))
          .map((finding) => ({ ...finding, of: { template, locale } })),
      )
    const passes = ofForms.some((found) => found.every(({ severity }) => severity === 'warning'))
    return ofForms.flat().map((each) => (passes ? { ...each, severity: 'warning' as const } : each))
  })
}
