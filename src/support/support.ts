/**
 * "Why did my code not come?": all data about a recipient in one call, and the reset by support. Sent notices and
 * decisions are in PostgreSQL, current limits in the limiter, and codes in the code store.
 */
import { defaultScene } from '../base/names.ts'
import type { CodeStore } from '../captcha/code-store.ts'
import type { KnownBrowsers } from '../captcha/known-browsers.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Limiter, Policies } from '../limiter/index.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { Suppression, Suppressions } from '../notice/suppressions.ts'
import type { Lane } from '../rules/caller.ts'
import { findRule } from '../rules/key-fields.ts'
import type { Quota } from '../rules/quota.ts'
import type { CheckEntry, DecisionLog, RefusalEntry } from './decision-log.ts'
import type { Operation, Operations, Resettable } from './operations.ts'
import { type LookUpRequest, type Subject, subjectsOf } from './subjects.ts'

export interface LimitState {
  /** The policy that the rule is declared in. */
  policy: string
  rule: string
  window: string
  used: number
  limit: number
  resetsInMs: number
  /** Time until the rule admits a call; 0 if it admits a call now, or if it only observes. */
  nextInMs: number
  /** The rule applies to sends of codes. */
  isOfCaptcha: boolean
  lockedForMs?: number
  /** The lane of the count, if the rule counts by lane. */
  lane?: Lane
}

export interface LiveCode {
  scene: string
  expiresAt: Date
  /** For strangers, and for known browsers. */
  triesLeft: number
  knownTriesLeft: number
}

type NoticeRow = Awaited<ReturnType<NoticeStore['search']>>['items'][number]

export interface Story {
  limits: LimitState[]
  /** The longest current lock. With an IP address in the look-up: the longest lock of that address. */
  lockedForMs?: number
  /** With an IP address in the look-up: the longest lock that applies only to other addresses. */
  lockedElsewhereForMs?: number
  codes: LiveCode[]
  refusals: RefusalEntry[]
  checks: CheckEntry[]
  notices: NoticeRow[]
  operations: Operation[]
  /** Reports because of which the recipient gets no messages. */
  suppressions: Suppression[]
}

export type Support = ReturnType<typeof createSupport>
export type LookUp = Support['lookUp']
export type Reset = Support['reset']

export interface ResetRequest extends LookUpRequest {
  what: readonly Resettable[]
  reason: string
  keyId: string
}

/** Length of each list of the story. */
const maxShown = 20

export function createSupport(deps: {
  store: Pick<NoticeStore, 'search' | 'scenesOf'>
  operations: Operations
  suppressions: Suppressions
  decisions: Pick<DecisionLog, 'find'>
  codes: Pick<CodeStore, 'look' | 'scenesOf' | 'drop'>
  known: Pick<KnownBrowsers, 'endAll'>
  limiter: Pick<Limiter, 'peek' | 'reset'>
  quota: Quota
  secrets: Pick<Secrets, 'recipientHash' | 'recipientHashes'>
  policies: () => Policies
}) {
  const { store, operations, suppressions, decisions, codes, limiter, quota, secrets, policies } =
    deps

  /** The data that is needed before the limits are read. */
  async function findKnown(asked: LookUpRequest) {
    const { app, channel, to } = asked
    const recipientHashes = secrets.recipientHashes(channel, to)
    const [{ items: notices }, sentFor, liveFor, done, suppressed, { refusals, checks }] =
      await Promise.all([
        store.search({ app, recipientHashes, limit: maxShown }),
        store.scenesOf(app, recipientHashes),
        codes.scenesOf({ app, channel, to }),
        operations.find(app, recipientHashes),
        suppressions.find(app, channel, to),
        decisions.find({ app, channel, to }),
      ])
    const scenes = [...new Set([defaultScene, ...liveFor, ...sentFor])]
    const subjects = subjectsOf(asked, { scenes, refusals }, policies(), quota)
    const ofRecipient = { notices, operations: done, suppressions: suppressed }
    return { ...ofRecipient, refusals, checks, scenes, subjects }
  }

  async function statesOf({ rule, fields, isShownIfUsed }: Subject): Promise<LimitState[]> {
    const states = await limiter.peek(rule.policy, fields, rule.name)
    const { policy, name } = rule
    const isOfCaptcha = findRule(policies(), 'captcha', name)?.policy === policy
    const ofLane = rule.fields.includes('lane') ? { lane: fields.lane as Lane } : {}
    return states
      .filter(({ used, lockedForMs }) => !isShownIfUsed || used > 0 || lockedForMs !== undefined)
      .map(({ kind: _, left: __, ...state }) => ({ policy, isOfCaptcha, ...state, ...ofLane }))
  }

  return {
    /** Throws Unavailable if PostgreSQL or Redis does not answer. */
    async lookUp(asked: LookUpRequest): Promise<Story> {
      const { app, channel, to } = asked
      const { scenes, subjects, ...known } = await findKnown(asked)
      const shown = shownOf(subjects)
      const [states, live] = await Promise.all([
        Promise.all(shown.map(statesOf)),
        Promise.all(
          scenes.map(async (scene) => {
            const code = await codes.look({ app, scene, channel, to })
            if (code.result === 'gone') return []
            const { triesLeft, knownTriesLeft, expiresAt } = code
            return [{ scene, expiresAt, triesLeft, knownTriesLeft }]
          }),
        ),
      ])
      const limits = states.flat()
      const ofOthers = shown.map((subject) => isElsewhere(subject, asked))
      const lockedForMs = longestLockIn(states.filter((_, at) => !ofOthers[at]))
      const lockedElsewhereForMs = longestLockIn(states.filter((_, at) => ofOthers[at]))
      return {
        ...known,
        refusals: known.refusals.slice(0, maxShown),
        checks: known.checks.slice(0, maxShown),
        limits,
        ...(lockedForMs === undefined ? {} : { lockedForMs }),
        ...(lockedElsewhereForMs === undefined ? {} : { lockedElsewhereForMs }),
        codes: live.flat().slice(0, maxShown),
      }
    },

    /**
     * Deletes counts of a recipient, lifts locks, and ends codes, known browsers and suppressions. It is recorded first, so that
     * no reset is done without a record. If Redis is then away, the caller must send the reset again.
     *
     * Only counts whose key contains the recipient are deleted. Counts shared with others (an address, a prefix, a country,
     * the app) stay, because deleting them would also help an attacker. Throws Unavailable if PostgreSQL or Redis does not
     * answer.
     */
    async reset(request: ResetRequest): Promise<void> {
      const { app, channel, to, what, reason, keyId } = request
      const recipientHash = secrets.recipientHash(channel, to)
      const { scenes, subjects } = await findKnown(request)
      await operations.record(app, recipientHash, { keyId, what: [...what], reason })
      const wanted = subjects.filter(({ rule, isPersonal }) => {
        return isPersonal && what.includes(rule.kind === 'lockout' ? 'lock' : 'limits')
      })
      await Promise.all([
        ...wanted.map(({ rule, fields }) => limiter.reset(rule.policy, fields, rule.name)),
        what.includes('suppression') && suppressions.end(app, channel, to),
        ...(what.includes('code')
          ? scenes.map((scene) => codes.drop({ app, scene, channel, to }))
          : []),
        ...(what.includes('lane') ? [deps.known.endAll({ app, channel, to })] : []),
      ])
    },
  }
}

/** Whether the count belongs to another address than the requested one. */
const isElsewhere = ({ rule, fields }: Subject, { ip }: LookUpRequest) =>
  ip !== undefined && rule.fields.includes('ip') && fields.ip !== ip

function longestLockIn(states: readonly LimitState[][]): number | undefined {
  const locks = states.flat().flatMap(({ lockedForMs }) => lockedForMs ?? [])
  return locks.length > 0 ? Math.max(...locks) : undefined
}

/** With locks from many addresses, the latest ones are shown. */
function shownOf(subjects: readonly Subject[]): Subject[] {
  const shown = Map.groupBy(subjects, ({ rule }) => rule)
  return [...shown.values()].flatMap((ofRule) => ofRule.slice(0, maxShown))
}
