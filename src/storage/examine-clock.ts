import { about, type Finding } from '../base/finding.ts'

const warnMs = 2_000
const errorMs = 60_000

/**
 * Compares this machine's clock with a server's. Limits, codes and rows use the servers' clocks. Signed requests to
 * providers and receivers, and times in pages, use this clock.
 */
export async function lookAtClock(server: string, askMs: () => Promise<number>): Promise<Finding> {
  const { ok, warning, error } = about('clock')
  const sentAt = Date.now()
  const serverMs = await askMs()
  const answeredAt = Date.now()
  // The server read its clock between the two times here, so any time between them counts as equal.
  const aheadMs = Math.max(sentAt - serverMs, 0) - Math.max(serverMs - answeredAt, 0)
  const apart = Math.abs(aheadMs)
  if (apart < warnMs) return ok(`this machine and ${server} agree`)
  const shown = `${Math.round(apart / 1_000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} ${server}`
  const advice = 'run a time service (NTP) on both'
  return (apart < errorMs ? warning : error)(`this machine is ${shown}`, advice)
}
