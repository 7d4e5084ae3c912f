/** The limiter, and the settings that a SIGHUP changes without a restart (config/reloadable-file.ts). Counts are kept. */
import type { Channel } from '../base/channel.ts'
import type { Closers } from '../base/closers.ts'
import { createReloadableFile } from '../config/reloadable-file.ts'
import type { Secrets } from '../crypto/secrets.ts'
import { policiesOf } from '../http/plugins.ts'
import { createLimiter } from '../limiter/index.ts'
import { policiesInForce } from '../rules/policies-in-force.ts'
import { priceOf } from '../rules/price-of.ts'
import type { Servers } from '../storage/servers.ts'
import type { Config } from './load-config.ts'
import type { Metrics } from './metrics.ts'

/** Uses of a request can be given back within this time. */
const rememberRequestsMs = 300_000

export type Limits = ReturnType<typeof createLimits>

export function createLimits(
  config: Config,
  { openRedis, keyPrefix }: Servers,
  secrets: Secrets,
  metrics: Metrics,
  closers: Closers,
  clock?: () => number,
) {
  const { file, onReload, reload } = createReloadableFile(config.file)
  let inForce = policiesInForce(config.file)
  const limiter = createLimiter({
    policies: inForce.raw,
    redis: openRedis('limiter'),
    keyPrefix,
    subjectKey: secrets.limiterKey,
    // The uses of a send are given back when its code passes. That can be at the end of the life of the code.
    rememberRequestsMs: Math.max(rememberRequestsMs, config.file.code.ttl + 60_000),
    // With a test clock, a refusal remembered for a second could apply for simulated hours.
    ...(clock ? { clock, rememberRefusalsMs: 0 } : {}),
    onRefused: (labels) => metrics.rejected.inc(labels),
    onObserved: (labels) => metrics.observed.inc(labels),
  })
  closers.onClose(() => limiter.close())
  metrics.startRulesAtZero(inForce.policies)
  onReload((file) => {
    const next = policiesInForce(file)
    // Throws if the policies of a running plugin do not fit these.
    limiter.setPolicies(next.raw)
    inForce = next
    metrics.startRulesAtZero(inForce.policies)
  })

  return {
    limiter,
    /** The policies now in force. */
    policies: () => inForce.policies,
    /** A reload changes prices together with the rules that count them. */
    priceOf: (channel: Channel, country: string) => priceOf(file().prices, channel, country),
    /** False for a provider that the file now in force takes out of all routes. */
    isEnabled: (provider: string) => file().providers[provider]?.disabled !== true,
    file,
    onReload,
    /** Applies new rules without losing counts. Returns which sections are reloaded and which need a restart. */
    reload(next: Config): ReturnType<typeof reload> {
      // Plugins stay until a restart, and need their policies until then.
      const policies = { ...next.file.policies, ...policiesOf(config.plugins) }
      const { reloaded, needRestart } = reload({ ...next.file, policies })
      if (next.templates.digest !== config.templates.digest) needRestart.push('templates')
      return { reloaded, needRestart: [...new Set(needRestart)] }
    },
  }
}
