/**
 * What the limits have decided lately about the recipient that asked last, told as lanes: one for each window of each rule,
 * with what is used of it now and when it was taken. Kept in this process and for the demo page alone; the product's own
 * record is src/support/history.ts, which leaves out what a flood repeats.
 */
import type { Decided, Lane } from '../../web/demo/demo-state.ts'
import type { Limiter, Policies, Rule, WindowState } from '../limiter/index.ts'
import { isCheckPolicy, pageGuessPolicy, pagePolicy } from '../rules/policies.ts'
import type { Fields, OnDecided } from '../rules/quota.ts'

/** Enough for a visitor, and nothing that a flood could fill. */
const maxDecisions = 500

interface Entry extends Decided {
  policy: string
  fields: Fields
}

export type DecisionWatch = ReturnType<typeof createDecisionWatch>

export function createDecisionWatch(deps: { limiter: Limiter; policies: () => Policies }) {
  const { limiter, policies } = deps
  const entries: Entry[] = []
  /** What the last send and the last guess were asked with. */
  const latest = new Map<string, Fields>()
  let followed: { channel: string; to: string } | undefined

  const isFollowed = ({ channel, to }: Fields) =>
    followed?.channel === channel && followed?.to === to

  const onDecided: OnDecided = ({ policy, fields, decision }) => {
    if (!isFollowed(fields)) {
      latest.clear()
      followed = { channel: String(fields.channel), to: String(fields.to) }
    }
    const asked = isCheckPolicy(policy) ? 'check' : 'send'
    latest.set(asked, fields)
    const entry: Entry = { asked, policy, fields, atMs: Date.now() }
    if (!decision.admitted) {
      const { rule, window, retryAfterMs } = decision
      const declaredIn = ruleOf(policy, rule)?.policy ?? policy
      entry.refusal = { policy: declaredIn, rule, window, retryAfterMs }
    }
    entries.unshift(entry)
    if (entries.length > maxDecisions) entries.pop()
  }

  const ruleOf = (policy: string, name: string) =>
    policies()[policy]?.find((rule) => rule.name === name)

  async function lanesOf(policy: string, fields: Fields | undefined): Promise<Lane[]> {
    const rules = policies()[policy] ?? []
    const states = fields ? await limiter.peek(policy, fields) : rules.flatMap(unused)
    return states.flatMap((state) => {
      const rule = rules.find(({ name }) => name === state.rule)
      return rule ? [laneOf(rule, state, fields)] : []
    })
  }

  function laneOf(rule: Rule, state: State, fields: Fields | undefined): Lane {
    const { window, limit, used, resetsInMs, lockedForMs } = state
    const { policy, name, mode, kind, windows } = rule
    const windowMs = windows.find((one) => one.window === window)?.windowMs ?? 0
    const taken = entries.filter(
      (entry) =>
        !entry.refusal && ruleOf(entry.policy, name) && countsWith(rule, entry.fields, fields),
    )
    return {
      ...{ policy, rule: name, mode, kind, window, windowMs, limit, used, resetsInMs },
      ...(lockedForMs === undefined ? {} : { lockedForMs }),
      // Without the rule's own count there is no telling what a release or a right code gave back.
      takenAtMs: rule.permits === 1 ? taken.slice(0, used).map(({ atMs }) => atMs) : [],
    }
  }

  return {
    onDecided,

    /** Throws when Redis does not answer. */
    async look() {
      const lanes = await Promise.all([
        lanesOf(pagePolicy, latest.get('send')),
        lanesOf(pageGuessPolicy, latest.get('check')),
      ])
      const decisions = entries.filter(({ fields }) => isFollowed(fields)).slice(0, 20)
      return {
        followed,
        lanes: lanes.flat(),
        decisions: decisions.map(({ fields, policy, ...decided }): Decided => decided),
      }
    },

    /** All that counts against the recipient that asked last is forgotten. */
    async forget(): Promise<void> {
      const [sent, checked] = [latest.get('send'), latest.get('check')]
      if (sent) await limiter.reset(pagePolicy, sent)
      if (checked) await limiter.reset(pageGuessPolicy, checked)
      entries.length = 0
    },
  }
}

type State = Pick<WindowState, 'rule' | 'window' | 'limit' | 'used' | 'resetsInMs' | 'lockedForMs'>

const unused = ({ name, windows }: Rule): State[] =>
  windows.map(({ window, limit }) => ({ rule: name, window, limit, used: 0, resetsInMs: 0 }))

/** Whether both fall under one count of the rule. */
const countsWith = ({ fields }: Rule, one: Fields, other: Fields | undefined) =>
  other !== undefined && fields.every((field) => one[field] === other[field])
