import type { Channel } from '../base/channel.ts'

/** By country; for other countries and for mail there is a price in each file that has any. */
type Prices = Readonly<Record<string, number>> & {
  readonly default: number
  readonly email: number
}

/** What a message costs in thousandths of the operator's currency. Without `prices` no rule asks. */
export function createPriceOf(prices: Prices | undefined) {
  return (channel: Channel, country: string): number => {
    if (!prices) return 1
    return channel === 'email' ? prices.email : (prices[country] ?? prices.default)
  }
}
