/**
 * All counts of a recipient in the rules for sends and checks. A rule may count by more than the recipient (an address,
 * a scene). The values of these other fields come from the request, from sent notices and from recorded refusals.
 */
import type { Policies, Rule } from '../limiter/index.ts'
import { lanes } from '../rules/caller.ts'
import { namesRecipient, requestFields } from '../rules/key-fields.ts'
import { rulesInUse } from '../rules/policies.ts'
import type { Fields, Quota } from '../rules/quota.ts'
import type { Recipient } from './decision.ts'
import type { RefusalEntry } from './decision-log.ts'

export interface Subject {
  rule: Rule
  fields: Fields
  isPersonal: boolean
  /** The count is known only from a refusal, or is of known browsers. It is shown only while it is not empty. */
  isShownIfUsed: boolean
}

export interface LookUpRequest extends Recipient {
  /** ISO 3166 code of a phone number; empty for mail. */
  country: string
  /** The IP address of the person, if support knows it. */
  ip?: string | undefined
}

/** The default template of captchas. */
const defaultTemplate = 'captcha'

export function subjectsOf(
  { app, channel, to, country, ip }: LookUpRequest,
  known: { scenes: readonly string[]; refusals: readonly RefusalEntry[] },
  policies: Policies,
  quota: Quota,
): Subject[] {
  const contexts = lanes.flatMap((lane) =>
    known.scenes.map((scene): Partial<Fields> => {
      const draft = { app, channel, to, scene, template: defaultTemplate }
      const origin = { ip: ip ?? '', country, keyId: '', isPage: false, lane }
      const { ip: _, keyId: __, ...fields } = quota.fieldsOf(draft, {}, origin)
      return { ...fields, ...(ip === undefined ? {} : { ip }) }
    }),
  )
  const [base = {}] = contexts

  function subjectsOfRule(rule: Rule): Subject[] {
    const isPersonal = namesRecipient(rule)
    const remembered = known.refusals
      .filter(({ policy, rule: name }) => policy === rule.policy && name === rule.name)
      .flatMap(({ values }) => {
        const ofRequest = requestFields(rule)
        // These values were recorded before a reload, for a rule with other fields.
        if (values?.length !== ofRequest.length) return []
        const ofRefusal = ofRequest.map((field, at) => [field, values[at] ?? ''])
        return lanes.map((lane) => ({ ...base, lane, ...Object.fromEntries(ofRefusal) }))
      })
    const subjects = new Map<string, Subject>()
    for (const [at, context] of [...contexts, ...remembered].entries()) {
      const values = rule.fields.map((field) => context[field])
      if (values.includes(undefined)) continue
      const text = JSON.stringify(values)
      if (subjects.has(text)) continue
      const isShownIfUsed = at >= contexts.length || context.lane === 'known'
      subjects.set(text, { rule, fields: context as Fields, isPersonal, isShownIfUsed })
    }
    return [...subjects.values()]
  }

  return rulesInUse(policies).flatMap(subjectsOfRule)
}
