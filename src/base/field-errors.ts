/**
 * The faults of a request's fields. All reasons are names of `words`, also the reasons of schemas. So a caller reads one voice
 * in one language.
 */
import type { ZodError, ZodType, z } from 'zod'
import { type FieldWord, fill, type Language, type Values, words } from './words.ts'

/** A wrong field and its fault. `path` is as in `params.name`, empty for the body itself. */
export interface FieldError {
  path: string
  word: FieldWord
  values?: Values
}

/** A wrong field as callers read it. */
export interface ShownFieldError {
  path: string
  message: string
}

export function shownFieldErrors(
  errors: readonly (FieldError | ShownFieldError)[],
  language: Language = 'en',
): ShownFieldError[] {
  const { fields, types } = words[language]
  return errors.map((error) => {
    // The outcome of a call in process has its words already.
    if ('message' in error) return error
    const { path, word, values = {} } = error
    const named = (type: string) => types[type as keyof typeof types]
    const given = { ...values, types: (values.types as readonly string[])?.map(named) ?? [] }
    return { path, message: fill(fields[word], language, given) }
  })
}

const maxFieldErrors = 20
const maxPathLength = 100

/** The value that the schema returns, or its faults. The paths of faults begin with `place`. */
export function readFields<T>(
  schema: ZodType<T>,
  value: unknown,
  place = '',
): { data: T } | { errors: FieldError[] } {
  const parsed = schema.safeParse(value, missing)
  return parsed.success ? { data: parsed.data } : { errors: faultsIn(parsed.error, place) }
}

const missing = {
  error: ({ input }: { input?: unknown }) =>
    input === undefined ? words.en.fields.missing : undefined,
}

function faultsIn(error: ZodError, place: string): FieldError[] {
  const faults: FieldError[] = []
  const add = (names: readonly PropertyKey[], fault: Fault) => {
    const path = [place, ...names.map(String)].filter(Boolean).join('.').slice(0, maxPathLength)
    faults.push({ path, ...fault })
  }
  for (const issue of error.issues) {
    const keys = issue.code === 'unrecognized_keys' ? issue.keys : []
    for (const key of keys.slice(0, maxFieldErrors)) add([...issue.path, key], { word: 'unknown' })
    if (keys.length === 0) add(issue.path, faultOf(issue))
    if (faults.length >= maxFieldErrors) break
  }
  return faults.slice(0, maxFieldErrors)
}

type Fault = Omit<FieldError, 'path'>

/** A schema can contain the English text of a word. */
const wordsByText = new Map<unknown, FieldWord>(
  Object.entries(words.en.fields).map(([word, text]) => [text, word as FieldWord]),
)

function faultOf(issue: z.core.$ZodIssue): Fault {
  const word = wordsByText.get(issue.message)
  if (word) return { word }
  switch (issue.code) {
    case 'invalid_type':
      return ofTypes([issue.expected])
    case 'invalid_value':
      return {
        word: 'oneOf',
        values: { options: issue.values.map((value) => JSON.stringify(value)) },
      }
    case 'too_big':
      return { word: tooBig(issue.origin), values: { n: Number(issue.maximum) } }
    case 'too_small':
      return tooSmall(issue.origin, Number(issue.minimum))
    case 'invalid_format':
      return { word: issue.format === 'datetime' ? 'time' : 'wrong' }
    case 'invalid_key':
      return issue.issues[0] ? faultOf(issue.issues[0]) : { word: 'wrong' }
    case 'invalid_union':
      return ofUnion(issue.errors.flatMap(([first]) => first ?? []))
    default:
      return { word: 'wrong' }
  }
}

/** `firsts`: the first fault by each schema of the union. A value has the type of at most one of them. */
function ofUnion(firsts: readonly z.core.$ZodIssue[]): Fault {
  const ofItsType = firsts.find(({ code }) => code !== 'invalid_type')
  if (ofItsType) return faultOf(ofItsType)
  return ofTypes(firsts.map((first) => (first.code === 'invalid_type' ? first.expected : '')))
}

const ofTypes = (types: readonly string[]): Fault =>
  types.length > 0 && types.every((type) => Object.hasOwn(words.en.types, type))
    ? { word: 'type', values: { types } }
    : { word: 'wrong' }

const isNumber = (origin: string) => origin === 'number' || origin === 'int'

function tooBig(origin: string): FieldWord {
  if (isNumber(origin)) return 'tooHigh'
  return origin === 'string' ? 'tooLong' : 'tooMany'
}

function tooSmall(origin: string, n: number): Fault {
  if (isNumber(origin)) return { word: 'tooLow', values: { n } }
  if (n === 1) return { word: 'empty' }
  return { word: origin === 'string' ? 'tooShort' : 'tooFew', values: { n } }
}
