/** What policies look like as people write them, and what becomes of them. */
import * as z from 'zod'
import { isObject } from '../../base/json.ts'
import type { RawInclude, Rule } from './rule.ts'
import { type Kind, maxLimit, type Schema, type Terms, terms } from './terms.ts'

/** One schema is chosen by what stands there, because a union would not tell of a mistake where it is. */
function chosen<Output>(choose: (raw: unknown) => Schema<Output>) {
  return z.unknown().transform((raw, context): Output => {
    const parsed = choose(raw).safeParse(raw)
    if (parsed.success) return parsed.data
    for (const issue of parsed.error.issues) context.addIssue({ code: 'custom', ...issue })
    return z.NEVER
  })
}

const kinds = Object.keys(terms) as Kind[]
const termsOf = (kind: Kind) => [kind, chosen(() => terms[kind]).optional()]
const eitherTerms: Record<Kind, z.ZodOptional<z.ZodType<Terms>>> = Object.fromEntries(
  kinds.map(termsOf),
)

const name = z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/i, 'a name is letters, digits, - and _')
const field = z.string().regex(/^[a-zA-Z_]\w*$/, 'a number, or the name of a field')

/** One rule, as it is written. */
export const ruleSchema = z
  .strictObject({
    name,
    key: z.string().min(1).max(500),
    ...eitherTerms,
    permits: z.union([z.number().int().min(1).max(maxLimit), field]).default(1),
    scope: z.enum(['overall', 'per-client']).default('overall'),
    mode: z.enum(['enforce', 'observe', 'challenge']).default('enforce'),
    refund: z.literal('passed').optional(),
    message: z.string().min(1).optional(),
  })
  .transform((raw, context): RuleOfNoPolicy => {
    const problem = (path: string[], message: string) =>
      context.addIssue({ code: 'custom', path, message })
    const { name, key, permits, scope, mode, refund, message } = raw
    const shared = { name, key, permits, scope, mode, refund, message }
    const given = kinds.filter((kind) => raw[kind])
    if (given.length !== 1) {
      problem([], `a rule has exactly one of ${listOf(kinds)}`)
    }
    const [kind = 'sliding'] = given
    if (/[{}]/.test(shared.key.replaceAll(/\{[a-zA-Z_]\w*\}/g, ''))) {
      problem(['key'], `"${shared.key}" has a brace that is not part of a {field}`)
    }
    const rule: RuleOfNoPolicy = {
      ...shared,
      kind,
      fields: [...shared.key.matchAll(/\{(\w+)\}/g)].map(([braced]) => braced.slice(1, -1)),
      // Terms with a mistake have none.
      windows: [],
      ...raw[kind],
    }
    if (rule.windows.some(({ limit }) => limit > 0 && Number(shared.permits) > limit)) {
      const most = kind === 'bucket' ? 'burst' : 'a limit'
      problem(['permits'], `permits are above ${most}, so nothing would ever pass`)
    }
    return rule
  })

type RuleOfNoPolicy = Omit<Rule, 'policy'>

const include = z.strictObject({ include: name })

const ruleOrInclude = chosen<RuleOfNoPolicy | RawInclude>((raw) =>
  isObject(raw) && 'include' in raw ? include : ruleSchema,
)

/** The schema of the policy file's `policies`; its output is `Policies`. */
export const policiesSchema = z
  .record(name, z.array(ruleOrInclude))
  .transform((declared, context) => {
    const entriesOf = new Map(Object.entries(declared))
    const policies: Record<string, Rule[]> = {}
    /** With those of the policies that it includes; undefined where one of them leads back to itself. */
    function rulesOf(policy: string, within: readonly string[]): Rule[] | undefined {
      if (within.includes(policy)) return undefined
      const found = (entriesOf.get(policy) ?? []).map((entry) => {
        if ('include' in entry) return rulesOf(entry.include, [...within, policy])
        // What has a mistake of its own is not a rule and has no name.
        return 'name' in entry ? [{ ...entry, policy }] : []
      })
      return found.includes(undefined) ? undefined : (found.flat() as Rule[])
    }
    for (const [name, entries] of entriesOf) {
      const names = new Set<string>()
      policies[name] = entries.flatMap((entry, index) => {
        const isInclude = 'include' in entry
        const problem = (message: string) => {
          const path = [name, index, isInclude ? 'include' : 'name']
          context.addIssue({ code: 'custom', path, message })
        }
        if (isInclude && !entriesOf.has(entry.include)) {
          problem(`there is no policy "${entry.include}"`)
        }
        const rules = isInclude
          ? rulesOf(entry.include, [name])
          : 'name' in entry
            ? [{ ...entry, policy: name }]
            : []
        if (!rules) {
          problem(`"${(entry as RawInclude).include}" leads into a circle of includes`)
          return []
        }
        for (const { name } of rules) {
          if (names.has(name)) problem(`two rules are named "${name}"`)
          names.add(name)
        }
        return rules
      })
    }
    return policies
  })

const listOf = (words: readonly string[]) => `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
