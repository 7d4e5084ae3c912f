import type { Meter } from '../base/meter.ts'

export function rulesMetrics({ counter }: Meter) {
  const labels = { policy: [] as string[], rule: [] as string[] }
  const rejected = counter(
    'postern_rejected_total',
    'Requests refused by a limit, by policy and rule.',
    labels,
  )
  const observed = counter(
    'postern_observed_total',
    'Requests that a rule in mode observe would have refused.',
    labels,
  )
  return {
    rejected,
    observed,
    /** Starts the counters of the policy file's rules at 0, at start and after each reload. */
    startRulesAtZero(policies: Readonly<Record<string, readonly { name: string }[]>>) {
      for (const [policy, rules] of Object.entries(policies)) {
        for (const { name: rule } of rules) {
          rejected.inc({ policy, rule }, 0)
          observed.inc({ policy, rule }, 0)
        }
      }
    },
  }
}
