/**
 * Which counts are about a recipient: of every rule that a send or a check is asked, with each set of values that
 * is known. What a rule counts beside the recipient (an address, a scene) comes from the request, from the notices sent,
 * and from the refusals that are remembered.
 */
import type { Policies, Rule } from '../limiter/index.ts'
import { declaringPolicies } from '../rules/policies.ts'
import type { Fields, Quota } from '../rules/quota.ts'
import { fieldsBeside, namesRecipient } from '../rules/recipient-rules.ts'
import type { Recipient } from './record.ts'
import type { RefusalEntry } from './recorded.ts'

export interface Subject {
  rule: Rule
  fields: Fields
  isPersonal: boolean
  /** Known from a refusal alone, so it is told only while it counts something. */
  isRemembered: boolean
}

export interface Asked extends Recipient {
  /** ISO 3166 code of a number; empty for mail. */
  country: string
  /** An address the person asks from, where support knows one. */
  ip?: string | undefined
}

/** The template of captchas whose callers name none. */
const defaultTemplate = 'captcha'

export function subjectsOf(
  { app, channel, to, country, ip }: Asked,
  known: { scenes: readonly string[]; refusals: readonly RefusalEntry[] },
  /** The rules as they are now. */
  policies: Policies,
  quota: Quota,
): Subject[] {
  const contexts = known.scenes.map((scene): Partial<Fields> => {
    const draft = { app, channel, to, scene, template: defaultTemplate }
    const origin = { ip: ip ?? '', country, keyId: '', isPage: false }
    const { ip: _, keyId: __, ...fields } = quota.fieldsOf(draft, {}, origin)
    return { ...fields, ...(ip === undefined ? {} : { ip }) }
  })
  const [base = {}] = contexts

  function subjectsOfRule(rule: Rule): Subject[] {
    const isPersonal = namesRecipient(rule)
    const remembered = known.refusals
      .filter(({ policy, rule: name }) => policy === rule.policy && name === rule.name)
      .flatMap(({ values }) => {
        const beside = fieldsBeside(rule)
        // Of the rule as it was before a reload.
        if (values?.length !== beside.length) return []
        const ofRefusal = beside.map((field, at) => [field, values[at] ?? ''])
        return [{ ...base, ...Object.fromEntries(ofRefusal) }]
      })
    const subjects = new Map<string, Subject>()
    for (const [at, context] of [...contexts, ...remembered].entries()) {
      const values = rule.fields.map((field) => context[field])
      if (values.includes(undefined)) continue
      const text = JSON.stringify(values)
      if (subjects.has(text)) continue
      const isRemembered = at >= contexts.length
      subjects.set(text, { rule, fields: context as Fields, isPersonal, isRemembered })
    }
    return [...subjects.values()]
  }

  return declaringPolicies.flatMap((name) =>
    // A policy that includes another has its rules too; they count as declared.
    (policies[name] ?? []).filter(({ policy }) => policy === name).flatMap(subjectsOfRule),
  )
}
