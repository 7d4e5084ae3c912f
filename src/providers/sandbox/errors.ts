import type { FaultRule } from './settings.ts'

/** The fault for this recipient: the fault of the first rule that fits. */
export function findFault(rules: readonly FaultRule[], to: string): FaultRule | undefined {
  return rules.find(
    (rule) =>
      (rule.to === undefined || rule.to.some((pattern) => fits(pattern, to))) &&
      (rule.share === 1 || Math.random() < rule.share),
  )
}

function fits(pattern: string, to: string): boolean {
  if (pattern.endsWith('*')) return to.startsWith(pattern.slice(0, -1))
  if (pattern.startsWith('*')) return to.endsWith(pattern.slice(1))
  return to === pattern
}
