/**
 * The diagnoses above a story: why a code did not arrive or did not pass, in the order of docs/support.md. A diagnosis is a
 * key of `words.diagnoses` with its values. The words also give the next step.
 */
import { pageCheckPolicy } from '../rules/policies.ts'
import type { Story } from '../support/support.ts'
import type { ConsoleWords } from './page.ts'
import type { Tone } from './parts.ts'

export interface Diagnosis {
  tone: Tone
  name: keyof ConsoleWords['diagnoses']
  rule?: string
  ms?: number
  provider?: string
  error?: string | null
}

export interface Told
  extends Pick<
    Story,
    | 'lockedForMs'
    | 'lockedElsewhereForMs'
    | 'limits'
    | 'codes'
    | 'refusals'
    | 'checks'
    | 'notices'
    | 'operations'
    | 'suppressions'
  > {
  /** `allowed`, or what the policy file does not allow about the recipient. */
  destination: 'allowed' | 'country' | 'type' | 'mail_domain' | 'recipient'
  isTestRecipient: boolean
}

/** The most decisive diagnosis comes first. Notices count only if the recipient has no code. */
export function diagnose(all: Told, nowMs: number): Diagnosis[] {
  const told = ofCodes(all)
  const { destination, isTestRecipient, refusals, checks, notices } = told
  const { lockedForMs, lockedElsewhereForMs } = told
  if (isTestRecipient) return [{ tone: 'wait', name: 'test' }]
  const diagnoses: Diagnosis[] = []
  for (const { reason, provider } of told.suppressions)
    diagnoses.push({ ...suppressed[reason], provider })
  if (destination !== 'allowed') diagnoses.push({ tone: 'bad', name: destination })
  if (lockedForMs !== undefined) diagnoses.push({ tone: 'bad', name: 'locked', ms: lockedForMs })
  if (lockedElsewhereForMs !== undefined)
    diagnoses.push({ tone: 'wait', name: 'lockedElsewhere', ms: lockedElsewhereForMs })
  const others = [...ofRefusals(told, nowMs), ...ofChecks(told), ...ofNotices(notices, checks)]
  // During a lock, the advice to request or to type a code again is wrong. With a lock of another address, another person
  // typed the wrong codes.
  const misleading =
    lockedForMs !== undefined ? toTryAgain : lockedElsewhereForMs !== undefined ? ofOthers : none
  diagnoses.push(...others.filter(({ name }) => !misleading.has(name)))
  const isUnknown = refusals.length + checks.length + notices.length === 0
  if (isUnknown && diagnoses.length === 0) diagnoses.push({ tone: 'plain', name: 'nothing' })
  return diagnoses
}

/** Without the notices and their refusals, if codes were sent or refused. */
function ofCodes(told: Told): Told {
  const notices = told.notices.filter(({ kind }) => kind === 'captcha')
  const refusals = told.refusals.filter(({ policy }) => policy !== noticePolicy)
  return notices.length + refusals.length > 0 ? { ...told, notices, refusals } : told
}

const suppressed = {
  bounced: { tone: 'bad', name: 'bounced' },
  complained: { tone: 'wait', name: 'complained' },
  opted_out: { tone: 'bad', name: 'optedOut' },
} as const satisfies Record<string, Diagnosis>

type Names = ReadonlySet<Diagnosis['name']>
const toTryAgain: Names = new Set(['refusedOver', 'mistyped', 'usedUpCode', 'goneCode'])
const ofOthers: Names = new Set(['mistyped', 'usedUpCode'])
const noticePolicy = 'notice'
const none: Names = new Set()

function ofRefusals(told: Told, nowMs: number): Diagnosis[] {
  const { refusals, notices } = told
  const lastSent = notices[0]?.createdAt.getTime() ?? 0
  /** The refusal that ends last. */
  function longest(name: 'refused' | 'checksRefused', of: Story['refusals']): Diagnosis[] {
    const [last] = of
      .map((refusal) => ({ ...refusal, ms: leftMs(refusal, told, nowMs) }))
      .filter(({ challenge, ms }) => !challenge && ms > 0)
      .toSorted((a, b) => b.ms - a.ms)
    return last ? [{ tone: 'bad', name, rule: last.rule, ms: last.ms }] : []
  }
  // A refusal by the policy `check` is a lock. `lockedForMs` shows it.
  const ofPage = refusals.filter(({ policy }) => policy === pageCheckPolicy)
  const asked = refusals.filter(({ isOfCheck }) => !isOfCheck)
  const since = asked.filter(({ at }) => at.getTime() >= lastSent)
  const lasting = [...longest('checksRefused', ofPage), ...longest('refused', since)]
  if (lasting.length > 0) return lasting
  const [latest] = since
  if (!latest) return []
  return [
    { tone: 'wait', name: latest.challenge ? 'challenged' : 'refusedOver', rule: latest.rule },
  ]
}

/**
 * The time for which a refusal still applies. The current limit decides, where the story has it: support may have reset
 * it, or its uses were given back.
 */
function leftMs(
  { at, retryAfterMs, policy, rule }: Story['refusals'][number],
  { limits, operations }: Told,
  nowMs: number,
): number {
  const states = limits.filter((limit) => limit.policy === policy && limit.rule === rule)
  const untilEndMs = at.getTime() + retryAfterMs - nowMs
  // An empty count can be left out of the story. A reset leaves counts that others share, and the story has those.
  const wasReset = operations.some((done) => done.what.includes('limits') && done.at >= at)
  if (states.length === 0) return wasReset ? 0 : untilEndMs
  return Math.min(untilEndMs, Math.max(...states.map(({ nextInMs }) => nextInMs)))
}

function ofChecks({ checks: [latest], codes }: Told): Diagnosis[] {
  if (latest?.result === 'passed') return [{ tone: 'good', name: 'passed' }]
  if (latest?.result === 'mismatch') {
    const canPass = codes.some(({ triesLeft }) => triesLeft > 0)
    return [{ tone: 'wait', name: canPass ? 'mistyped' : 'usedUpCode' }]
  }
  if (latest?.result === 'gone') return [{ tone: 'wait', name: 'goneCode' }]
  return []
}

function ofNotices([latest]: Story['notices'], [check]: Story['checks']): Diagnosis[] {
  // A person who typed a code has received one.
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
