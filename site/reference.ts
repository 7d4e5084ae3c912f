/** The pages of the reference that are made from the code at each build, so they are always up to date. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { environmentNames, readEnvironment } from '../src/config/environment.ts'
import { createPostern } from '../src/main/create-postern.ts'

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
}

interface Operation {
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly {
    in: string
    name: string
    schema?: Schema
    description?: string
  }[]
  readonly requestBody?: { content: Record<string, { schema: Schema }> }
  readonly responses: Readonly<
    Record<string, { description?: string; content?: Record<string, { schema: Schema }> }>
  >
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** The answer of a running API to `GET /openapi.json`. It needs neither Redis nor PostgreSQL. */
async function readOpenApi(): Promise<OpenApi> {
  const postern = await createPostern({
    environment: {
      DATABASE_URL: 'postgresql://localhost:1/none',
      REDIS_URL: 'redis://localhost:1',
      SECRET: 'nothing is kept under this secret',
      LOG_LEVEL: 'silent',
    },
    policy: 'postern.yaml',
  })
  const server = express().use(postern.router).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const answer = await fetch(`http://127.0.0.1:${port}/openapi.json`, {
      headers: { connection: 'close' },
    })
    return (await answer.json()) as OpenApi
  } finally {
    server.close()
    await postern.close()
  }
}

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
const code = (text: string) => `\`${text}\``
const row = (...cells: string[]) => `| ${cells.map(cell).join(' | ')} |`

/** Every call with every field of its body and of its answers. */
export async function callsPage(): Promise<string> {
  const { paths, components } = await readOpenApi()
  const resolve = (schema: Schema): Schema =>
    schema.$ref
      ? resolve(components.schemas[schema.$ref.split('/').at(-1) as string] as Schema)
      : schema
  const typeOf = (given: Schema): string => {
    const schema = resolve(given)
    if (schema.const !== undefined) return code(JSON.stringify(schema.const))
    if (schema.enum) return schema.enum.map((one) => code(JSON.stringify(one))).join(', ')
    const kinds = schema.anyOf ?? schema.oneOf
    if (kinds) return [...new Set(kinds.map(typeOf))].join(' or ')
    if (schema.items) return `list of ${typeOf(schema.items)}`
    return (
      [schema.type ?? 'object'].flat().join(' or ') + (schema.format ? ` (${schema.format})` : '')
    )
  }
  const fields = (given: Schema, heading: string): string[] => {
    const schema = resolve(given)
    const entries = Object.entries(
      schema.items ? (resolve(schema.items).properties ?? {}) : (schema.properties ?? {}),
    )
    if (entries.length === 0) return []
    const needed = new Set((schema.items ? resolve(schema.items) : schema).required)
    return [
      `| ${heading} | type | needed | |`,
      '|---|---|---|---|',
      ...entries.map(([name, field]) =>
        row(code(name), typeOf(field), needed.has(name) ? 'yes' : '', field.description ?? ''),
      ),
      '',
    ]
  }
  const sections = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema
      const answers = Object.entries(operation.responses)
      const success = answers.find(([status]) => status.startsWith('2'))
      const answer = Object.values(success?.[1].content ?? {})[0]?.schema
      return [
        `## ${code(`${method.toUpperCase()} ${path}`)}`,
        '',
        ...[operation.summary, operation.description].flatMap((text) => (text ? [text, ''] : [])),
        ...(body ? fields(body, 'field of the body') : []),
        ...(answer ? fields(answer, `member of the ${success?.[0]} answer`) : []),
        `Answers: ${answers.map(([status]) => code(status)).join(', ')}.`,
        '',
      ]
    }),
  )
  return [
    '# Calls and their fields',
    '',
    'Made at the build of this site from the OpenAPI document of the API itself, which every API serves at `GET /openapi.json` and shows at `GET /docs`. What each call is for, with examples: [HTTP](../http.md).',
    '',
    ...sections,
  ].join('\n')
}

/**
 * The description of each variable: its comment in `.env.example`. Consecutive variables share the comment above
 * them.
 */
function wordsOfVariables(): ReadonlyMap<string, string> {
  const example = readFileSync(new URL('../.env.example', import.meta.url), 'utf8')
  const words = new Map<string, string>()
  for (const paragraph of example.split('\n\n').slice(1)) {
    let comment = ''
    let isNamed = false
    for (const line of paragraph.split('\n')) {
      const name = /^(?:# ?)?([A-Z][A-Z0-9_]*)=/.exec(line)?.[1]
      if (name) words.set(name, comment)
      else comment = `${isNamed ? '' : comment} ${line.replace(/^# ?/, '')}`.trim()
      isNamed = name !== undefined
    }
  }
  return words
}

/** Every variable with its default from the code and its description from `.env.example`. */
export function environmentPage(): string {
  const words = wordsOfVariables()
  const read = readEnvironment({
    DATABASE_URL: 'postgresql://localhost/postern',
    REDIS_URL: 'redis://localhost',
    SECRET: 'x'.repeat(32),
  })
  if (!read.ok) throw new Error(read.problems.join('\n'))
  const defaults = read.environment as Readonly<Record<string, unknown>>
  const needed = new Set(['DATABASE_URL', 'REDIS_URL', 'SECRET'])
  return [
    '# Environment',
    '',
    'Made at the build of this site from the list that the processes read and from [.env.example](../../.env.example). A wrong or missing value stops a process at its start, with every problem listed at once. Everything else stands in the [policy file](../policy-file.md).',
    '',
    '| variable | default | |',
    '|---|---|---|',
    ...environmentNames.map((name) => {
      const value = needed.has(name) ? undefined : defaults[name]
      const given =
        value === undefined ? (needed.has(name) ? 'must be set' : '') : code(String(value))
      return row(code(name), given, words.get(name) ?? '')
    }),
    '',
  ].join('\n')
}
