/** A report of the registers of countries: filed, missing, and where to file it. */
import type { Registrations, Route } from './check-routes.ts'
import { rulesOf } from './data.ts'
import type { RegisterFact } from './facts.ts'
import { hasSender, kindOfSender } from './text-parts.ts'

/** `registered`: by provider and country, as for checkRoutes. */
export function paperwork(
  routes: readonly Pick<Route, 'provider' | 'sender' | 'countries'>[],
  registered: Readonly<Record<string, Readonly<Record<string, Registrations>>>>,
): string {
  const ways = routes.flatMap(({ provider, sender, countries }) =>
    countries.map((country) => [country, provider, sender] as const),
  )
  const once = new Map(ways.map((way) => [way.slice(0, 2).join(' '), way]))
  return [...once.values()]
    .sort()
    .map(([country, provider, sender]) => {
      const kind = sender === undefined ? undefined : kindOfSender(sender)
      const rules = rulesOf(country)
      const filed = registered[provider]?.[country] ?? {}
      const registers = (rules?.facts ?? [])
        .filter((fact) => fact.about === 'register')
        .filter((one) => !kind || !one.kind || one.kind === kind)
      const nothing = rules ? 'nothing to file is known' : 'no rules are known'
      const lines =
        registers.length > 0 ? registers.map((one) => lineOf(one, filed, sender)) : [nothing]
      return [`${rules?.name ?? country} (${country}), ${provider}`, ...lines].join('\n  ')
    })
    .join('\n\n')
}

function lineOf(
  register: RegisterFact,
  { entity, registered = [], templates = {} }: Registrations,
  sender: string | undefined,
) {
  const { of, name, url, takes, costs, local } = register
  const names = Object.keys(templates)
  const filed = {
    business: [entity ?? []].flat(),
    brand: [entity ?? registered].flat(),
    // Other senders are no help to this one.
    sender: sender === undefined || hasSender(registered, sender) ? registered : [],
    template: names,
  }[of]
  if (filed.length > 0) return `filed    ${of.padEnd(8)}  ${filed.join(', ')}`
  const facts = [
    takes && `takes ${Number.parseInt(takes, 10)} ${takes.endsWith('w') ? 'weeks' : 'days'}`,
    costs && `costs ${costs}`,
    local && 'only for a business of that country',
  ].filter(Boolean)
  const more = facts.length > 0 ? ` (${facts.join('; ')})` : ''
  return `missing  ${of.padEnd(8)}  ${name}, ${url}${more}`
}
