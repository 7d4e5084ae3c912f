/**
 * The limiter, and what a SIGHUP changes without a restart: the policies, the prices that they count, and `pace` and
 * `quotas` of providers. Counts are kept; everything else in the policy file needs a restart, and is reported.
 */

import type { Closers } from '../base/closers.ts'
import type { Metrics } from '../base/metrics.ts'
import { takeRules } from '../config/changed-sections.ts'
import type { PolicyFile } from '../config/policy-schema.ts'
import type { Secrets } from '../crypto/secrets.ts'
import { createLimiter } from '../limiter/index.ts'
import { policiesInForce } from '../rules/in-force.ts'
import type { Config } from './load-config.ts'
import type { Servers } from './servers.ts'

/** Longer than any other request may have to be given back. */
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
  /** As it is in force: of what `reload` was given, only what it could take. */
  let running = config.file
  let { raw, policies } = policiesInForce(running)
  const reloaders: ((next: PolicyFile) => void)[] = []
  const limiter = createLimiter({
    policies: raw,
    redis: openRedis('limiter'),
    keyPrefix,
    subjectKey: secrets.limiterKey,
    // A code may pass until its end, and what its send took be given back then.
    rememberRequestsMs: Math.max(rememberRequestsMs, config.file.code.ttl + 60_000),
    // What is remembered for a second of ours would hold for hours of theirs.
    ...(clock ? { clock, rememberRefusalsMs: 0 } : {}),
    onRefused: (labels) => metrics.rejected.inc(labels),
    onObserved: (labels) => metrics.observed.inc(labels),
  })
  closers.onClose(() => limiter.close())
  metrics.startRulesAtZero(policies)
  reloaders.push((next) => {
    ;({ raw, policies } = policiesInForce(next))
    limiter.setPolicies(raw)
    metrics.startRulesAtZero(policies)
  })

  return {
    limiter,
    /** The rules as they are now. */
    policies: () => policies,
    prices: () => running.prices,
    /** The policy file as it is in force. */
    file: () => running,
    /** Called with the file as it is in force from now on. */
    onReload(take: (next: PolicyFile) => void): void {
      reloaders.push(take)
    },
    /** Takes new rules without losing counts, and says which sections it took and which it could not. */
    reload(next: Config): { reloaded: string[]; needRestart: string[] } {
      const { file, taken, needRestart } = takeRules(running, next.file)
      running = file
      for (const take of reloaders) take(running)
      if (next.templates.digest !== config.templates.digest) needRestart.push('templates')
      return { reloaded: taken, needRestart: [...new Set(needRestart)] }
    },
  }
}
