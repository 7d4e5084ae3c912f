import { parsePhoneNumberFromString } from 'libphonenumber-js/max'
import type { Provider } from '../providers/provider.ts'

/** One entry of `routes.sms` or `routes.email`: the first whose `match` fits decides. */
export interface RouteRule {
  match: { country?: string[]; template?: string[]; app?: string[] }
  /** Provider names, in the order in which they are tried. */
  use: string[]
}

export interface Routable {
  channel: 'sms' | 'email'
  recipient: string
  template: string
  app: string
}

/** Which providers carry a notice, in the order in which they are tried; none when no route fits. */
export function createRouter(
  routes: Readonly<Record<'sms' | 'email', readonly RouteRule[]>>,
  providers: ReadonlyMap<string, Provider>,
) {
  return function routeOf(notice: Routable): Provider[] {
    const rules = routes[notice.channel]
    // Reading a number's country costs more than all else here, so only when a rule asks for it.
    const country = rules.some((rule) => rule.match.country) ? countryOf(notice) : undefined
    const fits = (allowed: string[] | undefined, value: string | undefined) =>
      allowed === undefined || (value !== undefined && allowed.includes(value))
    const rule = rules.find(
      ({ match }) =>
        fits(match.country, country) &&
        fits(match.template, notice.template) &&
        fits(match.app, notice.app),
    )
    return (rule?.use ?? []).flatMap((name) => {
      const provider = providers.get(name)
      return provider?.channels.includes(notice.channel) ? [provider] : []
    })
  }
}

function countryOf(notice: Routable): string | undefined {
  return notice.channel === 'sms'
    ? parsePhoneNumberFromString(notice.recipient)?.country
    : undefined
}
