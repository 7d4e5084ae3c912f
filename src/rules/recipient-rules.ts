/** How rules relate to one recipient. */
import type { Policies, Rule } from '../limiter/index.ts'
import { fieldsThatAre } from './key-fields.ts'
import type { Fields } from './quota.ts'

export function findRule(policies: Policies, policy: string, name: string): Rule | undefined {
  return policies[policy]?.find((rule) => rule.name === name)
}

const personalFields = fieldsThatAre('personal')

/** True if a count of the rule belongs to one recipient, or to the few addresses of one mailbox. */
export const namesRecipient = ({ fields }: Rule) =>
  personalFields.some((field) => fields.includes(field))

const knownFields = fieldsThatAre('known')

/** Key fields of a rule that are known only during a request. */
export const requestFields = ({ fields }: Rule) =>
  fields.filter((field) => !knownFields.includes(field))

/** The values of `requestFields`, for a rule whose key contains the recipient. Undefined if there are none to store. */
export function requestValues(rule: Rule, fields: Fields): string[] | undefined {
  const ofRequest = requestFields(rule)
  if (ofRequest.length === 0 || !namesRecipient(rule)) return undefined
  return ofRequest.map((field) => String(fields[field] ?? ''))
}
