/** The form of a file of data/, for build and tests, and of registrations in a policy file. The package does not contain it. */
import { z } from 'zod'
import type { CountryRules } from './facts.ts'

const https = z.url({ protocol: /^https$/ })
const consequence = z.enum(['replaced', 'refused', 'risky'])
const words = z.array(z.string().min(1)).min(1)
const kind = z.enum(['alphanumeric', 'long', 'short', 'tollFree'])
const length = z.int().min(1).max(20)

const isAnchoredPattern = (text: string) => {
  if (!/^\^.*\$$/.test(text)) return false
  new RegExp(text, 'u')
  return true
}

/** One kind of fact. Each fact has its source and the day on which it was read. */
const fact = <About extends string, Shape extends z.ZodRawShape>(about: About, shape: Shape) =>
  z.strictObject({ about: z.literal(about), ...shape, source: https, read: z.iso.date() })

const anyFact = z.union([
  fact('sender', {
    kind,
    is: z.enum(['works', 'registered', ...consequence.options]),
    unregistered: z.enum(['works', ...consequence.options]).optional(),
    shownAs: z.string().optional(),
  }),
  fact('senderForm', {
    is: z.enum(['refused', 'risky']).optional(),
    minLength: length.optional(),
    maxLength: length.optional(),
    characters: z.enum(['ascii', 'gsm', 'letters', 'lettersAndDigits']).optional(),
    pattern: z.string().refine(isAnchoredPattern, 'must be anchored: ^…$').optional(),
    needsLetter: z.boolean().optional(),
  }),
  fact('senderWords', { is: consequence, words, exact: z.boolean().optional() }),
  fact('text', {
    has: z.enum([
      ...['link', 'shortLink', 'phoneNumber', 'emailAddress', 'webOtp'],
      ...['emoji', 'nonGsm', 'word'],
    ] as const),
    words: words.optional(),
    is: z.enum(['registered', 'refused', 'risky']),
    unregistered: z.enum(['refused', 'risky']).optional(),
  }),
  fact('textForm', { needs: z.enum(['sign', 'brand']), is: z.enum(['refused', 'risky']) }),
  fact('template', {
    is: z.enum(['works', 'registered']),
    unregistered: z.enum(['works', 'refused', 'risky']).optional(),
    variables: z.string().optional(),
    tags: words.optional(),
  }),
  fact('register', {
    of: z.enum(['sender', 'template', 'brand', 'business']),
    kind: kind.optional(),
    name: z.string().min(1),
    url: https,
    takes: z
      .string()
      .regex(/^\d+[dw]$/)
      .optional(),
    costs: z.string().optional(),
    local: z.boolean().optional(),
  }),
  fact('price', { class: z.enum(['low', 'middle', 'high']) }),
  fact('note', { text: z.string().regex(/\.$/, 'must be a sentence') }),
])

/** `unregistered` belongs to `is: registered`, and `words` to `has: word`. */
const isWhole = (each: z.infer<typeof anyFact>) => {
  if (each.about === 'text') return (each.has === 'word') === (each.words !== undefined)
  if (each.about !== 'sender' && each.about !== 'template') return true
  return (each.is === 'registered') === (each.unregistered !== undefined)
}

export const countryRules: z.ZodType<CountryRules> = z.strictObject({
  country: z.string().regex(/^[A-Z]{2}$/),
  name: z.string().min(1),
  facts: z
    .array(anyFact.refine(isWhole, 'lacks unregistered or words, or has it for nothing'))
    .min(1),
})

/** Registrations with the carriers of a country; see check-routes.ts. */
export const registrations = z.strictObject({
  entity: z.string().min(1).optional(),
  registered: z.array(z.string().min(1)).optional(),
  templates: z
    .record(
      z.string(),
      z.strictObject({ id: z.string().optional(), text: z.string().min(1).optional() }),
    )
    .default({}),
  links: z.boolean().default(false),
})
