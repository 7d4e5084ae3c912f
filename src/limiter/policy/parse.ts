/**
 * Checks policies as people write them: either gives them typed or lists every problem with the path to
 * it. Nothing after this file meets an unchecked policy. Apart from the schema, because the types of the
 * package lead here and may not lead on to those of zod.
 */
import { InvalidPolicies } from '../errors.ts'
import type { ParsedPolicies, Policies, PolicyProblem } from './rule.ts'
import { policiesSchema } from './schema.ts'

export function parsePolicies(raw: unknown): ParsedPolicies {
  const parsed = policiesSchema.safeParse(raw)
  if (parsed.success) return { ok: true, policies: parsed.data }
  const problems = parsed.error.issues.flatMap((issue): PolicyProblem[] => {
    const path = issue.path.map((key) => (typeof key === 'symbol' ? String(key) : key))
    return issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ path: [...path, key], message: 'unknown key' }))
      : [{ path, message: issue.message }]
  })
  return { ok: false, problems }
}

/** Policies given in code are a programmer's: a mistake in them throws. */
export function checkedPolicies(raw: unknown): Policies {
  const parsed = parsePolicies(raw)
  if (!parsed.ok) throw new InvalidPolicies(parsed.problems)
  return parsed.policies
}
