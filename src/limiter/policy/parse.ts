/**
 * Parses policies from the form in which people write them. Returns them typed, or all problems, each with its path.
 * All later code gets only checked policies. As in terms.ts, the exported types do not contain types of zod.
 */
import * as z from 'zod'
import { isObject } from '../../base/json.ts'
import { missingInWords, schemaProblems } from '../../base/schema-problems.ts'
import { InvalidPolicies } from '../errors.ts'
import type { ParsedPolicies, Policies, RawInclude, Rule } from './rule.ts'
import { type Kind, maxLimit, type Schema, type Terms, terms } from './terms.ts'

/** Chooses one schema by the value. The schema of a union would not report the exact place of a mistake. */
function chosen<Output>(choose: (raw: unknown) => Schema<Output>) {
  return z.unknown().transform((raw, context): Output => {
    const parsed = choose(raw).safeParse(raw, missingInWords)
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

const name = z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/i, 'a name must be letters, digits, - and _')
const field = z.string().regex(/^[a-zA-Z_]\w*$/, 'a number, or the name of a field')

export const ruleSchema: Schema<RuleOfNoPolicy> = z
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
    // Terms with a mistake were not parsed, so they have no windows.
    const own: Terms | { windows?: never } | undefined = raw[kind]
    if (!own?.windows) return z.NEVER
    const rule: RuleOfNoPolicy = {
      ...shared,
      kind,
      fields: [...shared.key.matchAll(/\{(\w+)\}/g)].map(([braced]) => braced.slice(1, -1)),
      ...own,
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

const policiesSchema = z
  .record(name, z.array(ruleOrInclude))
  .transform((declared, context): Policies => {
    const entriesOf = new Map(Object.entries(declared))
    type Entry = (typeof declared)[string][number]
    /** Resolves includes. Undefined if an include leads back to a policy that contains it. */
    function rulesOf(entry: Entry, within: readonly string[]): Rule[] | undefined {
      const [policy = ''] = within
      // An entry with a mistake has no name.
      if (!('include' in entry)) return 'name' in entry ? [{ ...entry, policy }] : []
      if (within.includes(entry.include)) return undefined
      const included = entriesOf.get(entry.include) ?? []
      const found = included.map((one) => rulesOf(one, [entry.include, ...within]))
      return found.includes(undefined) ? undefined : (found.flat() as Rule[])
    }
    const rulesOfPolicy = ([policy, entries]: [string, Entry[]]) => {
      const names = new Set<string>()
      const rules = entries.flatMap((entry, index) => {
        const included = 'include' in entry ? entry.include : undefined
        const problem = (message: string) => {
          const path = [policy, index, included === undefined ? 'name' : 'include']
          context.addIssue({ code: 'custom', path, message })
        }
        const found = rulesOf(entry, [policy])
        if (!found) problem(`"${included}" leads into a circle of includes`)
        else if (included !== undefined && !entriesOf.has(included))
          problem(`there is no policy "${included}"`)
        for (const { name } of found ?? []) {
          if (names.has(name)) problem(`two rules are named "${name}"`)
          names.add(name)
        }
        return found ?? []
      })
      return [policy, rules]
    }
    return Object.fromEntries([...entriesOf].map(rulesOfPolicy))
  })

export function parsePolicies(raw: unknown): ParsedPolicies {
  const parsed = policiesSchema.safeParse(raw, missingInWords)
  if (parsed.success) return { ok: true, policies: parsed.data }
  return { ok: false, problems: schemaProblems(parsed.error) }
}

/** Policies in code are written by a programmer, so a mistake throws. */
export function checkedPolicies(raw: unknown): Policies {
  const parsed = parsePolicies(raw)
  if (!parsed.ok) throw new InvalidPolicies(parsed.problems)
  return parsed.policies
}

const listOf = (words: readonly string[]) => `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
