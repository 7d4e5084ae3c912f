/**
 * The latest decisions of the limits about the latest recipient, as lanes for the demo page. A lane is one window of one
 * rule, with its current uses and their times. The records stay in this process. They include records that the recorder
 * drops in a flood.
 */
import type { Channel } from '../base/channel.ts'
import type { Limiter, Policies, Rule } from '../limiter/index.ts'
import { lanes } from '../rules/caller.ts'
import { findRule } from '../rules/key-fields.ts'
import { isCheckPolicy, pageGuessPolicy, pagePolicy } from '../rules/policies.ts'
import type { Fields, OnDecided } from '../rules/quota.ts'
import { type Refusal, refusalOf } from '../support/decision.ts'

/** Enough for a visitor. A flood cannot use more memory. */
const maxRecords = 500
const maxShown = 20

interface Watched {
  policy: string
  fields: Fields
  atMs: number
  refusal?: Refusal | undefined
}

const recipientIn = ({ fields: { channel, to } }: Watched) =>
  ({ channel, to }) as { channel: Channel; to: string }

export type DecisionWatch = ReturnType<typeof createDecisionWatch>

export function createDecisionWatch(deps: { limiter: Limiter; policies: () => Policies }) {
  const { limiter, policies } = deps
  /** Records, newest first. */
  let records: Watched[] = []

  /** Records of the latest recipient. */
  const ofFollowed = () =>
    records.filter(({ fields }) =>
      ['channel', 'to'].every((name) => fields[name] === records[0]?.fields[name]),
    )

  /** Fields of the recipient's latest send or check. */
  const latestFor = (policy: string) =>
    ofFollowed().find((one) => isCheckPolicy(one.policy) === isCheckPolicy(policy))?.fields

  async function lanesOf(policy: string) {
    const fields = latestFor(policy)
    const states = fields ? await limiter.peek(policy, fields) : []
    return (policies()[policy] ?? []).flatMap((rule) =>
      rule.windows.map(({ window, windowMs = 0, limit }) => {
        const { used, resetsInMs, lockedForMs } = states.find(
          (state) => state.rule === rule.name && state.window === window,
        ) ?? { used: 0, resetsInMs: 0 }
        const { policy, name, mode, kind } = rule
        return {
          ...{ policy, rule: name, mode, kind, window, windowMs, limit, used, resetsInMs },
          ...(lockedForMs === undefined ? {} : { lockedForMs }),
          takenAtMs: takenFrom(rule, fields).slice(0, used),
        }
      }),
    )
  }

  /** Beginnings of uses, newest first. The count of the rule shows how many of them were given back. */
  function takenFrom(rule: Rule, fields: Fields | undefined): number[] {
    if (!fields || rule.permits !== 1) return []
    return records
      .filter((one) => !one.refusal && findRule(policies(), one.policy, rule.name))
      .filter((one) => rule.fields.every((field) => one.fields[field] === fields[field]))
      .map(({ atMs }) => atMs)
  }

  const onDecided: OnDecided = (decided) => {
    const { policy, fields } = decided
    const refusal = refusalOf(decided, policies())
    const record = { policy, fields, atMs: Date.now(), refusal }
    records = [record, ...records].slice(0, maxRecords)
  }

  return {
    onDecided,

    /** A part of `DemoState`, which the page reads. Throws when Redis does not answer. */
    async look() {
      const windows = await Promise.all([lanesOf(pagePolicy), lanesOf(pageGuessPolicy)])
      const [latest] = records
      return {
        followed: latest && recipientIn(latest),
        lanes: windows.flat(),
        decisions: ofFollowed()
          .slice(0, maxShown)
          .map(({ policy, atMs, refusal }) => {
            const asked: 'check' | 'send' = isCheckPolicy(policy) ? 'check' : 'send'
            return { asked, atMs, ...(refusal && { refusal }) }
          }),
      }
    },

    async forget(): Promise<void> {
      const forgotten = new Set(records)
      for (const policy of [pagePolicy, pageGuessPolicy]) {
        const fields = latestFor(policy)
        if (!fields) continue
        for (const lane of lanes) await limiter.reset(policy, { ...fields, lane })
      }
      // A decision that came during the resets stays.
      records = records.filter((one) => !forgotten.has(one))
    },
  }
}
