/** The OpenAPI document, made from the routes. */
import { gzipSync } from 'node:zlib'
import { z } from 'zod'
import {
  createDocument,
  type ZodOpenApiHeadersObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverrideContext,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi'
import { type ProblemCode, problems } from '../base/problems.ts'
import { words } from '../base/words.ts'
import { problemMediaType } from './problem.ts'
import { anyProblem, problemSchema } from './problem-schemas.ts'
import { defineRoute, isKeyed, type Route } from './route.ts'

/** Problems that every route may answer. */
const everywhere: ProblemCode[] = ['internal', 'unavailable']
const withKey: ProblemCode[] = ['unauthorized', 'forbidden']
const withBody: ProblemCode[] = ['invalid_request', 'payload_too_large', 'unsupported_media_type']
const withIdempotency: ProblemCode[] = ['idempotency_in_progress', 'idempotency_key_reused']

/** OpenAPI 3.1, whose schemas are JSON Schema 2020-12. */
function openApiDocument(routes: readonly Route[]): ReturnType<typeof createDocument> {
  const paths: Record<string, Partial<Record<Route['method'], ZodOpenApiOperationObject>>> = {}
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method]: operation(route) }
  }
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Postern',
        version: '1',
        description:
          'One-time codes and notices by SMS, email, phone calls, WhatsApp and Telegram, with limits that are exact.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      // The folder of the document's address. So every mount has the same document.
      servers: [{ url: '.' }],
      tags: [...new Set(routes.map(tagOf))].map((name) => ({
        name,
        ...(tags[name] ? { description: tags[name] } : {}),
      })),
      paths,
      components: {
        securitySchemes: {
          key: {
            type: 'http',
            scheme: 'bearer',
            description: 'A secret API key, or a publishable one for calls that allow it.',
          },
        },
      },
    },
    { allowEmptySchema: { custom: true }, override: describeInput },
  )
}

/**
 * Keeps the examples of a request body: zod drops them where a member is transformed. Writes the default of a request
 * member into its description. Generators of clients (openapi-typescript, for one) treat a member with a `default` as
 * always present, so their users would have to send it.
 */
function describeInput({ jsonSchema, zodSchema, io }: ZodOpenApiOverrideContext): void {
  if (io !== 'input') return
  const { examples } = zodSchema instanceof z.ZodObject ? (zodSchema.meta() ?? {}) : {}
  if (examples) jsonSchema.examples = examples as typeof jsonSchema.examples
  if (jsonSchema.default === undefined) return
  const text = `Default: \`${JSON.stringify(jsonSchema.default)}\`.`
  jsonSchema.description = [jsonSchema.description, text].filter(Boolean).join(' ')
  delete jsonSchema.default
}

/** Tags by the first part of a path below the version. */
const tags: Readonly<Record<string, string>> = {
  captchas: 'One-time codes: send one, check one.',
  challenges: 'Challenges, which callers from pages solve when a rule requires one.',
  notices: 'Messages: send one, read its state, search.',
  'jwks.json': 'The public keys of passes.',
  passes: 'Proof for a server that a page has checked a code.',
  receipts: "Providers' later reports on delivery.",
  recipients: 'For support: the records of a recipient, and the reset of its limits.',
  limits: 'The limiter for other services.',
  attempts: 'Login attempts, counted before a password is compared.',
  sandbox: 'Messages of the sandbox provider. Only on this machine, and only if it is configured.',
}

const tagOf = ({ path }: Route) => path.replace(/^\/(v1|\.well-known)/, '').split('/')[1] ?? ''

export function problemCodesOf(route: Route): ProblemCode[] {
  return [
    ...new Set([
      ...route.problems,
      ...(isKeyed(route) ? withKey : []),
      ...(route.body ? withBody : route.query ? (['invalid_request'] as const) : []),
      ...(route.isSend ? withIdempotency : []),
      ...everywhere,
    ]),
  ]
}

const forPages =
  'Publishable keys may call it, from the origins they list; they set neither `ip` nor `params` nor `code` of a send, and name no template beyond `browser.templates`.'

function operation(route: Route): ZodOpenApiOperationObject {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  return {
    operationId: route.name,
    summary: route.summary,
    ...(route.access === 'page' ? { description: forPages } : {}),
    tags: [tagOf(route)],
    security: isKeyed(route) ? [{ key: [] }] : [],
    requestParams: {
      ...(inPath.length > 0
        ? { path: z.object(Object.fromEntries(inPath.map((name) => [name, z.string()]))) }
        : {}),
      ...(route.query ? { query: route.query as z.ZodObject } : {}),
      ...(route.isSend ? { header: idempotencyHeader } : {}),
    },
    ...(route.body
      ? {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: bodyOf(route) } },
          },
        }
      : {}),
    responses: {
      ...answers(route),
      ...problemAnswers(problemCodesOf(route)),
      default: {
        description: 'Any other problem.',
        content: { [problemMediaType]: { schema: anyProblem } },
      },
    },
  }
}

const bodyOf = ({ body, otherForm }: Route) =>
  body && otherForm ? z.union([body, otherForm.body]) : body

const idempotencyHeader = z.object({
  'Idempotency-Key': z.string().max(255).optional().meta({
    description: 'A repeat with the same key gets the first answer and makes no second message.',
  }),
})

const requestIdHeader = {
  'X-Request-Id': {
    description: 'Also in the log line of the request.',
    schema: { type: 'string' },
  },
} satisfies ZodOpenApiHeadersObject

function answers(route: Route): ZodOpenApiResponsesObject {
  const entries = Object.entries(route.answers).map(([status, { description, schema }]) => [
    status,
    {
      description,
      headers: requestIdHeader,
      ...(schema ? { content: { 'application/json': { schema } } } : {}),
    },
  ])
  return Object.fromEntries(entries)
}

const retryAfterHeader = {
  'Retry-After': { description: 'Whole seconds, rounded up.', schema: { type: 'integer' } },
} satisfies ZodOpenApiHeadersObject

const problemHeaders: Partial<Record<ProblemCode, ZodOpenApiHeadersObject>> = {
  unauthorized: { 'WWW-Authenticate': { schema: { type: 'string' } } },
  unavailable: retryAfterHeader,
  locked: retryAfterHeader,
  limited: {
    ...retryAfterHeader,
    RateLimit: {
      description: 'The window that refused, its remaining uses and its wait in seconds.',
      schema: { type: 'string' },
    },
    'RateLimit-Policy': {
      description: 'The window that refused, with its limit.',
      schema: { type: 'string' },
    },
  },
}

/** One answer per status. Its description lists the codes with that status. */
function problemAnswers(codes: readonly ProblemCode[]): ZodOpenApiResponsesObject {
  const byStatus = new Map<number, ProblemCode[]>()
  for (const code of codes) {
    const { status } = problems[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const entries = [...byStatus].map(([status, ofStatus]) => [
    status,
    {
      description: ofStatus
        .map((code) => `\`${code}\`: ${words.en.problems[code].title}`)
        .join('; '),
      headers: Object.assign({}, requestIdHeader, ...ofStatus.map((code) => problemHeaders[code])),
      content: { [problemMediaType]: { schema: problemSchema(ofStatus) } },
    },
  ])
  return Object.fromEntries(entries)
}

/** Serves the document at `/openapi.json`. */
export function openApiRoute(routes: readonly Route[]): Route {
  // Built once, because strangers can request it, and an answer from existing bytes costs no memory.
  let made: { text: Buffer; gzipped: Buffer } | undefined
  function make() {
    const text = Buffer.from(JSON.stringify(openApiDocument(routes)))
    return { text, gzipped: gzipSync(text) }
  }

  return defineRoute({
    method: 'get',
    path: '/openapi.json',
    name: 'getOpenApi',
    summary: 'This document.',
    access: 'open',
    answers: { 200: { description: 'OpenAPI 3.1.' } },
    problems: [],
    run: async ({ headers }) => {
      made ??= make()
      const { text, gzipped } = made
      const vary = { vary: 'Accept-Encoding' }
      return acceptsGzip(headers['accept-encoding'])
        ? { status: 200, headers: { ...vary, 'content-encoding': 'gzip' }, text: gzipped }
        : { status: 200, headers: vary, text }
    },
  })
}

/** Whether an `Accept-Encoding` allows gzip: `gzip;q=0` refuses it. */
const acceptsGzip = (header: string | string[] | undefined) =>
  /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(header))
