/** The shape of every problem of the catalogue, by its code: what a generated client narrows on. */
import { z } from 'zod'
import { type ProblemCode, problems } from '../base/problems.ts'
import { challengeOffer } from './captchas.ts'
import { lockedForMs } from './words.ts'

const policy = z.string().meta({ description: 'The policy of the policy file that was asked.' })
const rule = z.string().meta({ description: 'The rule that refused, by its name in the policy.' })
const retryAfterMs = z
  .int()
  .meta({ description: 'After exactly this many milliseconds the same request is admitted.' })

/** What a problem says beside type, title, status, detail and code. */
const members: Partial<Record<ProblemCode, z.ZodRawShape>> = {
  invalid_request: {
    errors: z
      .array(
        z.object({
          path: z.string().meta({ description: 'As in `params.name`; empty for the whole body.' }),
          message: z.string(),
        }),
      )
      .optional()
      .meta({ description: 'Every field that is wrong, and why.' }),
  },
  limited: {
    policy,
    rule,
    window: z.string().meta({
      description: 'The window of that rule with the longest wait, e.g. `1h`.',
    }),
    retryAfterMs,
  },
  locked: { policy, rule, retryAfterMs },
  destination_not_allowed: {
    reason: z
      .enum(['country', 'type', 'mail'])
      .meta({ description: 'Its country, the type of number, or the domain of the mail address.' }),
  },
  challenge_required: {
    policy: policy.optional(),
    rule: rule
      .optional()
      .meta({ description: 'The rule that asks; absent when an answer was not good.' }),
    challenge: challengeOffer.meta({ description: 'To be solved, and sent with the next try.' }),
  },
  forbidden: {
    reason: z.literal('origin').optional().meta({
      description: 'The origin of the page is not one that the key lists, or that any key lists.',
    }),
  },
  code_mismatch: {
    triesLeft: z.int().meta({ description: 'At 0 the right code fails too.' }),
    lockedForMs: lockedForMs.optional(),
  },
  internal: {
    requestId: z.string().meta({ description: 'To be given to the operator of the service.' }),
  },
}

const pascalCase = (code: string) =>
  code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

const schemas = new Map(
  (Object.keys(problems) as ProblemCode[]).map((code) => [code, schemaOf(code)]),
)

function schemaOf(code: ProblemCode) {
  const { status, title } = problems[code]
  return z
    .object({
      type: z.literal(`urn:postern:problem:${code}`),
      title: z.string(),
      status: z.literal(status),
      detail: z
        .string()
        .meta({ description: 'For people: English or Chinese by Accept-Language.' }),
      code: z.literal(code),
      ...members[code],
    })
    .meta({ id: `${pascalCase(code)}Problem`, description: `${title}.` })
}

/** One problem, or the union of several, told apart by `code`. */
export function problemSchema(codes: readonly ProblemCode[]): z.ZodType {
  const [first, ...rest] = codes.map((code) => schemas.get(code) as ReturnType<typeof schemaOf>)
  if (!first) throw new Error('a problem has a code')
  return rest.length === 0 ? first : z.discriminatedUnion('code', [first, ...rest])
}

export const anyProblem = problemSchema([...schemas.keys()]).meta({
  id: 'Problem',
  description: 'Every problem there is (RFC 9457). `code` tells them apart.',
})
