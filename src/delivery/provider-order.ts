import { parsePhoneNumberFromString } from 'libphonenumber-js/max'
import type { Channel } from '../base/channel.ts'

/** One entry of `routes.sms` or `routes.email`: the first whose `match` fits decides. */
export interface RouteRule {
  match: {
    country?: string[] | undefined
    template?: string[] | undefined
    app?: string[] | undefined
  }
  use: readonly Use[]
}

/**
 * Without weights the providers are tried in the order written. With weights the first one is drawn by
 * them, and so are those after it; weight 0 is never drawn and comes last, as a reserve.
 */
export interface Use {
  provider: string
  weight?: number | undefined
}

export interface Routable {
  channel: Channel
  recipient: string
  template: string
  app: string
}

/** What a `match` looks at. */
export interface RoutedMessage {
  channel: Channel
  template: string
  app: string
  /** ISO 3166 code of a phone number; empty for email and for numbers of no country. */
  country: string
}

export type Routes = Readonly<Record<Channel, readonly RouteRule[]>>

/** The first rule that fits; undefined when none does. */
export function findRoute(
  routes: Routes,
  { channel, template, app, country }: RoutedMessage,
): RouteRule | undefined {
  const fits = (allowed: string[] | undefined, value: string) => allowed?.includes(value) ?? true
  return routes[channel].find(
    ({ match }) =>
      fits(match.country, country) && fits(match.template, template) && fits(match.app, app),
  )
}

/** Which providers carry a notice, in the order in which they are tried; none when no route fits. */
export function createProviderOrder<Provider extends { channels: readonly string[] }>(
  routes: Routes,
  providers: ReadonlyMap<string, Provider>,
  random: () => number = Math.random,
) {
  return function providersFor(notice: Routable): Provider[] {
    // Reading a number's country costs more than all else here, so only when a rule asks for it.
    const needsCountry = routes[notice.channel].some(({ match }) => match.country)
    const country = needsCountry ? countryOf(notice) : ''
    const rule = findRoute(routes, { ...notice, country })
    return inOrder(rule?.use ?? [], random).flatMap((name) => {
      const provider = providers.get(name)
      return provider?.channels.includes(notice.channel) ? [provider] : []
    })
  }
}

function inOrder(uses: readonly Use[], random: () => number): string[] {
  const order: string[] = []
  let left = uses
  while (left.length > 0) {
    const drawn = draw(left, random)
    order.push(drawn.provider)
    left = left.filter((use) => use !== drawn)
  }
  return order
}

/** One by weight; the first when none has any. */
function draw(uses: readonly Use[], random: () => number): Use {
  const total = uses.reduce((sum, { weight = 0 }) => sum + weight, 0)
  let mark = random() * total
  const drawn = uses.find(({ weight = 0 }) => {
    mark -= weight
    return mark < 0
  })
  return drawn ?? (uses[0] as Use)
}

function countryOf({ channel, recipient }: Routable): string {
  return (channel === 'sms' && parsePhoneNumberFromString(recipient)?.country) || ''
}
