/** Requests drawn from the description of a call: some that it allows, and some that are nearly allowed. */
import fc from 'fast-check'
import { type JsonSchema, spoilt, valuesOf } from './schema-values.ts'

export type Headers = Readonly<Record<string, string>>

export interface Call {
  /** With parameters as `{name}`. */
  path: string
  method: string
  parameters: readonly { name: string; in: string; schema: JsonSchema }[]
  body: JsonSchema | undefined
  contentType?: string
  /** JSON, unless given. */
  write?: (value: unknown) => string
  resolve: (ref: string) => JsonSchema
  /** Values by name that get further than random ones: an existing template, a number that can get messages. */
  known: Readonly<Record<string, readonly unknown[]>>
  /** Functions that make the headers that authenticate a caller, from the body. Each request draws one. */
  proofs: readonly ((body: string | undefined) => Headers)[]
  /** Returns the fault of an answer; undefined for a right answer. */
  faultIn: (answer: Answer) => string | undefined
}

export interface Answer {
  status: number
  /** The path without parameters; absent if there is none. */
  type: string | undefined
  text: string
}

export interface Drawn {
  call: Call
  url: string
  headers: Headers
  body: string | undefined
  prove: Call['proofs'][number]
}

export async function ask(origin: string, drawn: Drawn): Promise<Answer> {
  const { call, url, headers, body, prove } = drawn
  const reply = await fetch(origin + url, {
    method: call.method.toUpperCase(),
    headers: { ...headers, ...prove(body) },
    ...(body === undefined ? {} : { body }),
  })
  const text = await reply.text()
  return { status: reply.status, type: reply.headers.get('content-type')?.split(';')[0], text }
}

export const wordsOf = ({ call, url, headers, body }: Drawn) =>
  `${call.method} ${JSON.stringify({ url, headers, body }).slice(0, 1_000)}`

export function requestOf(call: Call): fc.Arbitrary<Drawn> {
  const { path, parameters, body, known, resolve, write = JSON.stringify } = call
  const { contentType = 'application/json' } = call
  const parameter = ({ name, schema }: Call['parameters'][number]) =>
    fc
      .oneof(
        fc.constantFrom(...((known[name] ?? ['x']) as string[])),
        valuesOf(schema, resolve, known),
        fc.string({ unit: 'grapheme' }),
      )
      .map((value) => [name, String(value)] as const)
  const of = (place: string) =>
    fc.tuple(...parameters.filter((one) => one.in === place).map(parameter)) as fc.Arbitrary<
      (readonly [string, string])[]
    >
  const text = body
    ? valuesOf(body, resolve, known).chain((value) =>
        fc.oneof(
          { weight: 5, arbitrary: fc.constant(write(value)) },
          { weight: 4, arbitrary: spoilt(value).map((other) => write(other) ?? '') },
          { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
        ),
      )
    : fc.constant(undefined)
  const headers = fc.record(
    {
      'content-type': fc.constantFrom(
        ...Array(8).fill(contentType),
        'text/plain',
        `${contentType}; charset=latin1`,
      ),
      'idempotency-key': fc.stringMatching(/^[\x21-\x7e]{0,40}$/),
      'accept-language': fc.constantFrom('zh', 'en', 'de;q=1, zh;q=0.5', '*', ';;;'),
      'x-request-id': fc.stringMatching(/^[\x21-\x7e]{1,70}$/),
      'x-correlator': fc.stringMatching(/^[\x21-\x7e]{0,70}$/),
      origin: fc.constantFrom('https://shop.example', 'null', 'HTTPS://SHOP.EXAMPLE/'),
    },
    { requiredKeys: ['content-type'] },
  )
  return fc
    .tuple(of('path'), of('query'), headers, text, fc.constantFrom(...call.proofs))
    .map(([inPath, inQuery, headers, body, prove]) => {
      let url = path
      for (const [name, value] of inPath) {
        // A client removes `.` and `..` from a path, which then is another path.
        const text = /^\.{0,2}$/.test(value) ? 'x' : encodeURIComponent(value.toWellFormed())
        url = url.replace(`{${name}}`, text)
      }
      const query = new URLSearchParams(Object.fromEntries(inQuery))
      const asked = inQuery.length > 0 ? `${url}?${query}` : url
      return { call, url: asked, headers: headers as Headers, body, prove }
    })
}
