/** The schema of every problem of the catalogue, by its code. Generated clients narrow by these. */
import { z } from 'zod'
import { type ProblemCode, problems, problemType } from '../base/problems.ts'
import { languageName, languages, words } from '../base/words.ts'
import { notAllowedReasons } from '../recipient/normalise-recipient.ts'
import { challengeOffer } from './captchas.ts'
import { lockedForMs } from './schemas.ts'

const named = languages.map((language) => languageName(language, 'en'))
const inCallersLanguage = `For people: ${named.slice(0, -1).join(', ')} or ${named.at(-1)} by Accept-Language.`

const policy = z.string().meta({ description: 'The policy of the policy file that refused.' })
const rule = z.string().meta({ description: 'The rule that refused, by its name in the policy.' })
const retryAfterMs = z
  .int()
  .meta({ description: 'After exactly this many milliseconds the same request is admitted.' })

const violatedPolicies = z.array(z.string()).meta({
  description: 'The rule that refused, by its name in `RateLimit-Policy`.',
})

/** Members of a problem besides type, title, status, detail and code. */
const members: Partial<Record<ProblemCode, z.ZodRawShape>> = {
  invalid_request: {
    errors: z
      .array(
        z.object({
          path: z.string().meta({ description: 'As in `params.name`; empty for the whole body.' }),
          message: z.string().meta({ description: inCallersLanguage }),
        }),
      )
      .optional()
      .meta({ description: 'Every field that is wrong, and why.' }),
  },
  limited: {
    'violated-policies': violatedPolicies,
    policy,
    rule,
    window: z.string().meta({
      description: 'The window of that rule with the longest wait, e.g. `1h`.',
    }),
    retryAfterMs,
  },
  locked: { 'violated-policies': violatedPolicies, policy, rule, retryAfterMs },
  destination_not_allowed: {
    reason: z.enum(notAllowedReasons).optional().meta({
      description:
        'The reason: the country, the type of number, the mail domain, this recipient, or a report of a provider: it `bounced`, `complained` or `opted_out`. Publishable keys do not see reports.',
    }),
  },
  challenge_required: {
    policy: policy.optional(),
    rule: rule
      .optional()
      .meta({ description: 'The rule that requires it; absent if an answer was not accepted.' }),
    challenge: challengeOffer.meta({ description: 'Send its answer with the next try.' }),
  },
  forbidden: {
    reason: z.literal('origin').optional().meta({
      description: 'The key, or every key, does not list the origin of the page.',
    }),
  },
  code_mismatch: {
    triesLeft: z.int().meta({ description: 'At 0 the right code fails too.' }),
    lockedForMs: lockedForMs.optional(),
  },
  internal: {
    requestId: z.string().meta({ description: 'Give it to the operator of the service.' }),
  },
}

const pascalCase = (code: string) =>
  code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

const schemas = new Map(
  (Object.keys(problems) as ProblemCode[]).map((code) => [code, schemaOf(code)]),
)

function schemaOf(code: ProblemCode) {
  const { status } = problems[code]
  const { title } = words.en.problems[code]
  return z
    .object({
      type: z.literal(problemType(code)),
      title: z.string().meta({ description: inCallersLanguage }),
      status: z.literal(status),
      detail: z.string().meta({ description: inCallersLanguage }),
      code: z.literal(code),
      ...members[code],
    })
    .meta({ id: `${pascalCase(code)}Problem`, description: `${title}.` })
}

/** The schema of one problem, or the union of several with `code` as discriminator. */
export function problemSchema(codes: readonly ProblemCode[]): z.ZodType {
  const [first, ...rest] = codes.map((code) => schemas.get(code) as ReturnType<typeof schemaOf>)
  if (!first) throw new Error('a problem has a code')
  return rest.length === 0 ? first : z.discriminatedUnion('code', [first, ...rest])
}

export const anyProblem = problemSchema([...schemas.keys()]).meta({
  id: 'Problem',
  description: 'Every problem (RFC 9457), identified by its `code`.',
})
