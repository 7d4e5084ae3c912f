import type { Channel } from '../base/channel.ts'

/** Prices by country. A file with prices always has one for all other countries and one for mail. */
type Prices = Readonly<Record<string, number>> & {
  readonly default: number
  readonly email: number
}

/** The price of a message in thousandths of the operator's currency. 1 without `prices`; then no rule uses it. */
export function priceOf(prices: Prices | undefined, channel: Channel, country: string): number {
  if (!prices) return 1
  return channel === 'email' ? prices.email : (prices[country] ?? prices.default)
}
