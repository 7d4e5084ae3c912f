import type { Channel } from '../base/channel.ts'

/**
 * Prices by country or by channel. The price of a channel is for all its countries. A file with prices always has one for
 * all others, and one for mail, whose addresses have no country.
 */
type Prices = Readonly<Record<string, number>> & {
  readonly default: number
  readonly email: number
}

/** The price of a message in thousandths of the operator's currency. 1 without `prices`; then no rule uses it. */
export function priceOf(prices: Prices | undefined, channel: Channel, country: string): number {
  if (!prices) return 1
  return prices[channel] ?? prices[country] ?? prices.default
}
