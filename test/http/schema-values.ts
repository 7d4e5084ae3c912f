import fc from 'fast-check'

/** The parts of JSON Schema that Postern's document uses. */
export interface JsonSchema {
  $ref?: string
  type?: string
  const?: unknown
  enum?: unknown[]
  examples?: unknown[]
  pattern?: string
  format?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: JsonSchema | boolean
  propertyNames?: JsonSchema
  items?: JsonSchema
  minItems?: number
  maxItems?: number
}

/**
 * Values that a schema allows. `known`: values by the name of a property that get further than random ones, such as
 * an existing template, or a number that can get messages.
 */
export function valuesOf(
  schema: JsonSchema,
  resolve: (ref: string) => JsonSchema,
  known: Readonly<Record<string, readonly unknown[]>>,
): fc.Arbitrary<unknown> {
  const of = (inner: JsonSchema): fc.Arbitrary<unknown> => {
    if (inner.$ref) return of(resolve(inner.$ref))
    if (inner.const !== undefined) return fc.constant(inner.const)
    if (inner.enum) return fc.constantFrom(...inner.enum)
    const options = inner.anyOf ?? inner.oneOf
    if (options) return fc.oneof(...options.map(of))
    switch (inner.type) {
      case 'string':
        return textOf(inner)
      case 'integer':
        return fc.integer({
          min: inner.minimum ?? -(2 ** 31),
          max: Math.min(inner.maximum ?? 2 ** 31, 2 ** 31),
        })
      case 'number':
        return fc.double({ noNaN: true, noDefaultInfinity: true })
      case 'boolean':
        return fc.boolean()
      case 'array':
        return fc.array(of(inner.items ?? {}), {
          minLength: inner.minItems ?? 0,
          maxLength: Math.min(inner.maxItems ?? 4, 4),
        })
      case 'object':
        return objectOf(inner)
      default:
        return fc.jsonValue()
    }
  }

  function objectOf({
    properties = {},
    required = [],
    additionalProperties,
    propertyNames,
  }: JsonSchema) {
    const named = Object.fromEntries(
      Object.entries(properties).map(([name, inner]) => {
        const pool = known[name]
        return [
          name,
          pool
            ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...pool) }, of(inner))
            : of(inner),
        ]
      }),
    )
    const own = fc.record(named, { requiredKeys: required.filter((name) => name in named) })
    if (typeof additionalProperties !== 'object') return own
    const names = propertyNames ? textOf(propertyNames) : fc.string()
    const others = fc.dictionary(names, of(additionalProperties), { maxKeys: 3 })
    return fc.tuple(own, others).map(([mine, more]) => ({ ...more, ...mine }))
  }

  return of(schema)
}

function textOf({ examples, pattern, format, minLength = 0, maxLength = 40 }: JsonSchema) {
  const options: fc.Arbitrary<string>[] = [
    fc.string({ minLength, maxLength: Math.min(maxLength, 40), unit: 'grapheme' }),
  ]
  if (examples) options.push(fc.constantFrom(...(examples as string[])))
  if (pattern) options.push(fc.stringMatching(new RegExp(pattern)))
  if (format === 'date-time') {
    options.push(fc.date({ noInvalidDate: true }).map((date) => date.toISOString()))
  }
  return fc.oneof(...options)
}

/** A value that is near to a given one, and rarely allowed. */
export function spoilt(value: unknown): fc.Arbitrary<unknown> {
  if (typeof value !== 'object' || value === null) return fc.jsonValue()
  const names = Object.keys(value)
  const anyName = names.length > 0 ? fc.constantFrom(...names) : fc.string()
  return fc.oneof(
    fc.jsonValue(),
    anyName.map((name) =>
      Object.fromEntries(Object.entries(value).filter(([key]) => key !== name)),
    ),
    fc.tuple(anyName, oddValue).map(([name, odd]) => ({ ...value, [name]: odd })),
    fc.tuple(fc.string(), fc.jsonValue()).map(([name, more]) => ({ ...value, [name]: more })),
  )
}

const oddValue = fc.oneof(
  fc.jsonValue(),
  fc.string({ unit: 'binary', maxLength: 400 }),
  fc.constantFrom(
    null,
    '',
    ' ',
    '\u0000',
    '\ud800',
    '__proto__',
    1e308,
    -0,
    [],
    {},
    'x'.repeat(6_000),
  ),
)
