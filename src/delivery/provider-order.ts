import type { Channel } from '../base/channel.ts'
import { addressKindOf } from '../recipient/channels.ts'

/** One entry of the routes of a channel. The first entry whose `match` fits is used. */
export interface RouteRule {
  match: {
    country?: string[] | undefined
    template?: string[] | undefined
    app?: string[] | undefined
  }
  use: readonly Use[]
}

/**
 * Without weights, providers are tried in the written order. With weights, each next provider is drawn at random by
 * weight. A provider with weight 0 is never drawn and comes last, as a reserve.
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

/** Properties of a message that `match` compares. */
export interface RoutedMessage {
  channel: Channel
  template: string
  app: string
  /** ISO 3166 code of a phone number; empty for email and for numbers without a country. */
  country: string
}

export type Routes = Readonly<Partial<Record<Channel, readonly RouteRule[]>>>

/** The first rule that fits; undefined when none does. */
function findRoute(
  routes: Routes,
  { channel, template, app, country }: RoutedMessage,
): RouteRule | undefined {
  const fits = (allowed: string[] | undefined, value: string) => allowed?.includes(value) ?? true
  return routes[channel]?.find(
    ({ match }) =>
      fits(match.country, country) && fits(match.template, template) && fits(match.app, app),
  )
}

/** True if a provider serves numbers of a country. */
export type Serves = (provider: string, country: string) => boolean

/** False for a provider that the policy file takes out of all routes. A reload can change it. */
export type IsEnabled = (provider: string) => boolean

/**
 * The providers of the route that fits and that serve the country, by name. Undefined if no route fits, or if the route has
 * no enabled provider.
 */
export function servingProviders(
  routes: Routes,
  message: RoutedMessage,
  serves: Serves,
  isEnabled: IsEnabled,
): string[] | undefined {
  const names = findRoute(routes, message)?.use.map(({ provider }) => provider)
  const enabled = names?.filter(isEnabled)
  return enabled?.length ? enabled.filter((name) => serves(name, message.country)) : undefined
}

/** Returns the providers for a notice in the order of attempts; none if no route fits or none serves its country. */
export function createProviderOrder<Provider extends { channels: readonly string[] }>(
  routes: Routes,
  providers: ReadonlyMap<string, Provider>,
  serves: Serves = () => true,
  isEnabled: IsEnabled = () => true,
) {
  return function providersFor(notice: Routable): Provider[] {
    const { country } = addressKindOf(notice.channel).placeOf(notice.recipient)
    const rule = findRoute(routes, { ...notice, country })
    return inOrder(rule?.use ?? []).flatMap((name) => {
      const provider = providers.get(name)
      if (!provider?.channels.includes(notice.channel)) return []
      return isEnabled(name) && serves(name, country) ? [provider] : []
    })
  }
}

function inOrder(uses: readonly Use[]): string[] {
  const order: string[] = []
  let left = uses
  while (left.length > 0) {
    const drawn = draw(left)
    order.push(drawn.provider)
    left = left.filter((use) => use !== drawn)
  }
  return order
}

/** Draws one provider by weight. If no provider has a weight, returns the first. */
function draw(uses: readonly Use[]): Use {
  const total = uses.reduce((sum, { weight = 0 }) => sum + weight, 0)
  let mark = Math.random() * total
  const drawn = uses.find(({ weight = 0 }) => {
    mark -= weight
    return mark < 0
  })
  return drawn ?? (uses[0] as Use)
}
