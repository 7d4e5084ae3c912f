/** What rules have to do with one recipient. */
import type { Policies, Rule } from '../limiter/index.ts'
import { fieldsThat } from './fields.ts'
import type { Fields } from './quota.ts'

export function findRule(policies: Policies, policy: string, name: string): Rule | undefined {
  return policies[policy]?.find((rule) => rule.name === name)
}

const personalFields = fieldsThat(({ isPersonal }) => isPersonal)

/** What it counts is this recipient's alone, or that of the few addresses of one mailbox. */
export const namesRecipient = ({ fields }: Rule) =>
  personalFields.some((field) => fields.includes(field))

const knownFields = fieldsThat(({ isKnown }) => isKnown)

/** The fields that are known only from a request. */
export const fieldsBeside = ({ fields }: Rule) =>
  fields.filter((field) => !knownFields.includes(field))

/** Their values, for a rule that names the recipient; undefined where there is nothing to keep. */
export function valuesBeside(rule: Rule, fields: Fields): string[] | undefined {
  const beside = fieldsBeside(rule)
  if (beside.length === 0 || !namesRecipient(rule)) return undefined
  return beside.map((field) => String(fields[field] ?? ''))
}
