import { z } from 'zod'
import { channels } from '../../base/channel.ts'
import { isPointer } from '../places.ts'
import { senderByCountry } from '../sender.ts'
import { compileText, hasDots, templateProblem, textsIn, variablesIn } from './template.ts'

const pointer = z.string().refine(isPointer, 'must be a JSON pointer, such as /data/0/id')

const oneOrMany = <T extends z.ZodType>(one: T) =>
  z.union([one.transform((value) => [value]), z.array(one).min(1)])

const single = z.union([z.string(), z.number(), z.boolean(), z.null()])

/** Single values that are compared as text. */
const words = oneOrMany(single.transform(String))

const where = z
  .record(pointer, words)
  .refine((places) => Object.keys(places).length > 0, 'must have a place, such as /code')

const status = oneOrMany(z.int().min(200).max(599))

const accepted = z.strictObject({
  status: status.optional(),
  where: where.optional(),
  /** Place of the vendor's message id. */
  id: pointer.optional(),
})

const error = z
  .strictObject({
    status: status.optional(),
    where: where.optional(),
    is: z.enum(['rejected', 'invalid_recipient', 'throttled', 'unavailable', 'unknown']),
    /** Place of the seconds until the next message. */
    retryAfter: pointer.optional(),
  })
  .refine((one) => one.status || one.where, 'needs status or where')
  .refine((one) => one.retryAfter === undefined || one.is === 'throttled', {
    message: 'is only for throttled',
    path: ['retryAfter'],
  })

const receipts = z
  .strictObject({
    /** The vendor calls `/v1/receipts/<name>?token=<token>`, or sends the token as a bearer. */
    token: z.string().min(16),
    id: pointer,
    state: pointer,
    delivered: words.default([]),
    failed: words.default([]),
    /** Place of a list with several receipts. The other places begin at each of its items. */
    list: pointer.optional(),
    /** The answer that the vendor expects, as plain text. */
    answer: z.string().max(1_000).optional(),
  })
  .refine(
    ({ delivered, failed }) => delivered.length + failed.length > 0,
    'needs words for delivered or failed',
  )

/** Headers that belong to the connection. */
const ofConnection = /^(content-length|transfer-encoding|connection|keep-alive|upgrade|expect|te)$/i

const headerName = z
  .string()
  .regex(/^[\w!#$%&'*+.^`|~-]+$/, 'is not a name of a header')
  .refine((name) => !ofConnection.test(name), 'is a header that Postern sets')

const scalar = z.union([z.string(), z.number(), z.boolean()])
const fields = z
  .record(z.string().min(1), z.union([scalar, z.array(scalar)]))
  .superRefine(checkTexts)
const tree = z
  .union([z.record(z.string(), z.unknown()), z.array(z.unknown())])
  .superRefine(checkTexts)
const printable = /^[^\p{Cc}]*$/u

const body = ['json', 'form', 'query'] as const

const shape = z.strictObject({
  channels: z.array(z.enum(channels)).min(1).default(['sms']),
  url: z.string().superRefine(checkTexts).superRefine(checkUrl),
  method: z.enum(['GET', 'POST', 'PUT']).default('POST'),
  headers: z
    .record(headerName, z.string().regex(printable, 'must be one line without control characters'))
    .superRefine(checkTexts)
    .default({}),
  basic: z.strictObject({ user: z.string(), password: z.string() }).optional(),
  json: tree.optional(),
  form: fields.optional(),
  query: fields.optional(),
  /** The value of `{{from}}`. */
  from: senderByCountry(z.string().min(1)).optional(),
  accepted: accepted.prefault({}),
  errors: z.array(error).default([]),
  receipts: receipts.optional(),
})

export type HttpSettings = z.infer<typeof shape>

export const httpSettings = shape.superRefine((settings, context) => {
  const report = (path: (string | number)[], message: string) =>
    context.addIssue({ code: 'custom', path, message })
  const { url, method, headers, basic, json, form, query, from } = settings
  for (const { path, text } of textsIn({ url, headers, json, form, query })) {
    if (from === undefined && variablesIn(text).includes('from')) {
      report(path, 'has {{from}}, but there is no from')
    }
  }
  const [first, ...others] = body.filter((name) => settings[name] !== undefined)
  for (const other of others) report([other], `there is ${first} already; choose one of the two`)
  if (method === 'GET' && (json || form)) {
    report([json ? 'json' : 'form'], 'a GET has no body; use query')
  }
  const hasAuthorization = Object.keys(headers).some((name) => /^authorization$/i.test(name))
  if (basic && hasAuthorization) report(['basic'], 'there is a header Authorization already')
})

type Context = Pick<z.RefinementCtx, 'addIssue'>

function checkTexts(tree: unknown, context: Context): void {
  for (const { path, text } of textsIn(tree)) {
    const message = templateProblem(text)
    if (message) context.addIssue({ code: 'custom', path, message })
  }
}

function checkUrl(url: string, context: Context): void {
  const message = urlProblem(url)
  if (message) context.addIssue({ code: 'custom', message })
}

/** A variable must not decide to which server the credentials go. */
function urlProblem(url: string): string | undefined {
  const fill = compileText(url)
  const [one, other] = ['x', 'y'].map((value) => URL.parse(fill(() => value) ?? ''))
  if (!one || !['http:', 'https:'].includes(one.protocol)) {
    return 'must be an address that begins with https:// or http://'
  }
  const serverOf = ({ origin, username, password }: URL) => [origin, username, password].join()
  if (!other || serverOf(one) !== serverOf(other)) return 'has a variable before its path'
  if (hasDots(url)) return 'has . or .. as a part of its path'
  return one.hash === '' ? undefined : 'has a part behind #, which is never sent'
}
