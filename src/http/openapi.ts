/** The OpenAPI document, made from the routes themselves. */
import { z } from 'zod'
import { type ProblemCode, problems } from '../base/problems.ts'
import { problemMediaType } from './problem.ts'
import { defineRoute, type Route } from './route.ts'

/** What any route may answer, beside its own. */
const everywhere: ProblemCode[] = ['internal', 'unavailable']
const withKey: ProblemCode[] = ['unauthorized']
const withBody: ProblemCode[] = ['invalid_request', 'payload_too_large', 'unsupported_media_type']
const withIdempotency: ProblemCode[] = ['idempotency_in_progress', 'idempotency_key_reused']

/** OpenAPI 3.1, whose schemas are JSON Schema 2020-12. */
export function openApiDocument(routes: readonly Route[]) {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] ??= {}
    paths[path][route.method] = operation(route)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Postern',
      version: '1',
      description: 'One-time codes and notices by SMS and email, with limits that are exact.',
    },
    paths,
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'A secret API key.' },
      },
      schemas: { Problem: problemSchema },
    },
  }
}

export function problemCodesOf(route: Route): ProblemCode[] {
  return [
    ...route.problems,
    ...(route.access === 'key' ? withKey : []),
    ...(route.body ? withBody : route.query ? (['invalid_request'] as const) : []),
    ...(route.isIdempotent ? withIdempotency : []),
    ...everywhere,
  ]
}

function operation(route: Route) {
  const parameters = [
    ...[...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
    })),
    ...(route.query ? queryParameters(route.query) : []),
    ...(route.isIdempotent
      ? [{ name: 'Idempotency-Key', in: 'header', schema: { type: 'string', maxLength: 255 } }]
      : []),
  ]
  return {
    operationId: route.name,
    summary: route.summary,
    ...(route.access === 'key' ? { security: [{ key: [] }] } : {}),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body
      ? {
          requestBody: {
            required: true,
            content: { 'application/json': { schema: schemaOf(route.body, 'input') } },
          },
        }
      : {}),
    responses: { ...answers(route), ...problemAnswers(problemCodesOf(route)) },
  }
}

function answers(route: Route) {
  const entries = Object.entries(route.answers).map(([status, { description, schema }]) => {
    const content = schema
      ? { content: { 'application/json': { schema: schemaOf(schema, 'output') } } }
      : {}
    return [status, { description, ...content }]
  })
  return Object.fromEntries(entries)
}

/** One answer per status; its description names the codes that have it. */
function problemAnswers(codes: readonly ProblemCode[]) {
  const byStatus = new Map<number, ProblemCode[]>()
  for (const code of codes) {
    const { status } = problems[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const entries = [...byStatus].map(([status, ofStatus]) => [
    status,
    {
      description: ofStatus.map((code) => `\`${code}\`: ${problems[code].title}`).join('; '),
      content: { [problemMediaType]: { schema: { $ref: '#/components/schemas/Problem' } } },
    },
  ])
  return Object.fromEntries(entries)
}

function queryParameters(schema: z.ZodType) {
  const { properties = {} } = schemaOf(schema, 'input') as { properties?: Record<string, unknown> }
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: 'query',
    schema: property,
  }))
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output') {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}

const problemSchema = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code'],
  properties: {
    type: { type: 'string', format: 'uri' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: {
      type: 'string',
      description: 'For people, in English or Chinese by Accept-Language.',
    },
    code: { type: 'string', enum: Object.keys(problems) },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: { path: { type: 'string' }, message: { type: 'string' } },
      },
    },
    policy: { type: 'string' },
    rule: { type: 'string' },
    window: { type: 'string' },
    retryAfterMs: { type: 'integer' },
    triesLeft: { type: 'integer' },
    requestId: { type: 'string' },
  },
}

/** Serves the document at `/openapi.json`. */
export function openApiRoute(routes: readonly Route[]): Route {
  const document = openApiDocument(routes)
  return defineRoute({
    method: 'get',
    path: '/openapi.json',
    name: 'getOpenApi',
    summary: 'This document.',
    access: 'open',
    answers: { 200: { description: 'OpenAPI 3.1.' } },
    problems: [],
    run: async () => ({ status: 200, body: document }),
  })
}
