/**
 * The answer before the story: what of a recipient's story explains why a code did not come, or did not pass, in the
 * order of docs/support.md. A finding names words of the console with what they speak of; what to do stands there too.
 */
import type { Story } from '../lookup/look-up.ts'
import type { Tone } from './parts.ts'
import type { Words } from './words.ts'

export interface Finding {
  tone: Tone
  /** The key of `words.findings`. */
  name: keyof Words['findings']
  rule?: string
  ms?: number
  provider?: string
  error?: string | null
}

export interface Told extends Pick<Story, 'lockedForMs' | 'refusals' | 'checks' | 'notices'> {
  /** `allowed`, or what about it is not. */
  destination: 'allowed' | 'country' | 'type' | 'mail_domain'
  isTestRecipient: boolean
}

/** The most decisive first. */
export function diagnose(told: Told, nowMs: number): Finding[] {
  const { destination, isTestRecipient, lockedForMs, refusals, checks, notices } = told
  if (isTestRecipient) return [{ tone: 'wait', name: 'test' }]
  const findings: Finding[] = []
  if (destination !== 'allowed') findings.push({ tone: 'bad', name: destination })
  if (lockedForMs !== undefined) findings.push({ tone: 'bad', name: 'locked', ms: lockedForMs })
  findings.push(...ofRefusals(told, nowMs), ...ofChecks(checks), ...ofNotices(notices, checks))
  const isUnknown = refusals.length + checks.length + notices.length === 0
  if (isUnknown && findings.length === 0) findings.push({ tone: 'plain', name: 'nothing' })
  return findings
}

/** Locks are told already. */
function ofRefusals({ refusals, notices }: Told, nowMs: number): Finding[] {
  const asked = refusals.filter(({ policy }) => policy !== 'check')
  const holding = asked.filter(
    ({ at, retryAfterMs, challenge }) => !challenge && at.getTime() + retryAfterMs > nowMs,
  )
  const [longest] = holding.toSorted((a, b) => endOf(b) - endOf(a))
  if (longest) {
    return [{ tone: 'bad', name: 'refused', rule: longest.rule, ms: endOf(longest) - nowMs }]
  }
  const [latest] = asked
  const lastSent = notices[0]?.createdAt.getTime() ?? 0
  if (!latest || latest.at.getTime() < lastSent) return []
  return [
    { tone: 'wait', name: latest.challenge ? 'challenged' : 'refusedOver', rule: latest.rule },
  ]
}

const endOf = ({ at, retryAfterMs }: Story['refusals'][number]) => at.getTime() + retryAfterMs

function ofChecks([latest]: Story['checks']): Finding[] {
  if (latest?.result === 'passed') return [{ tone: 'good', name: 'passed' }]
  if (latest?.result === 'mismatch') return [{ tone: 'wait', name: 'mistyped' }]
  if (latest?.result === 'gone') return [{ tone: 'wait', name: 'goneCode' }]
  return []
}

function ofNotices([latest]: Story['notices'], [check]: Story['checks']): Finding[] {
  // Whoever typed a code has got one.
  if (!latest || (check && check.at > latest.createdAt && check.result !== 'gone')) return []
  switch (latest.state) {
    case 'pending':
    case 'sending':
      return [{ tone: 'wait', name: 'pending' }]
    case 'sent':
      return [{ tone: 'wait', name: 'sent', provider: latest.provider ?? '' }]
    case 'delivered':
      return [{ tone: 'good', name: 'delivered' }]
    default:
      return [
        {
          tone: 'bad',
          name: latest.state === 'expired' ? 'expired' : 'failed',
          error: latest.error,
        },
      ]
  }
}
