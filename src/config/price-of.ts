import type { Channel } from '../base/channel.ts'
import type { PolicyFile } from './policy-schema.ts'

/** What a message costs in thousandths of the operator's currency. Without `prices` no rule asks. */
export function createPriceOf(prices: PolicyFile['prices']) {
  return (channel: Channel, country: string): number => {
    if (!prices) return 1
    return channel === 'email' ? prices.email : (prices[country] ?? prices.default)
  }
}
