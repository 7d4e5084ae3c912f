/**
 * Reads `postern.yaml`. Every problem is listed at once with its line, because an operator who mends
 * one error per restart loses an evening.
 *
 * This room knows the frame of the file. What stands inside `policies` and under a provider is checked
 * by the rooms that will use it, handed in as `checks`; their findings get their lines here.
 */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { isMap, LineCounter, parseDocument, visit } from 'yaml'
import { z } from 'zod'
import type { Channel } from '../base/channel.ts'
import { duration } from '../base/durations.ts'
import { eventTypes } from '../base/event-types.ts'
import { isUsableSecret } from '../crypto/standard-webhooks.ts'

export interface Finding {
  path: readonly (string | number)[]
  message: string
}

export interface ProviderEntry {
  readonly kind: string
  /** Calls by all workers together. */
  readonly pace?: string | undefined
  /** What the provider allows one recipient. */
  readonly quotas?: readonly string[] | undefined
  /** What is left of its section: its kind knows what that may be. */
  readonly settings: Readonly<Record<string, unknown>>
}

export interface SectionChecks {
  policies(raw: unknown): Finding[]
  /** Places are those in the provider's section of the file. */
  provider(name: string, entry: ProviderEntry): Finding[]
  channelsOf(kind: string): readonly string[]
  /** The templates of this folder, or what is wrong with them. */
  templates(folder: string): { has(template: string): boolean } | { problems: readonly string[] }
}

const country = z.string().regex(/^[A-Z]{2}$/, 'is a country code of two capitals, e.g. CN')

const oneOrMany = z
  .union([z.string(), z.array(z.string()).min(1)])
  .transform((value) => (typeof value === 'string' ? [value] : value))

/** Names to be tried in order, or names with weights: never a mixture, which nobody could read. */
const use = z
  .union([
    z.array(z.string().transform((provider) => ({ provider }))).min(1),
    z
      .array(z.strictObject({ provider: z.string(), weight: z.int().min(0).max(1_000) }))
      .min(1)
      .refine((list) => list.some(({ weight }) => weight > 0), 'at least one weight is above 0'),
  ])
  .transform((list): { provider: string; weight?: number }[] => list)

const route = z.strictObject({
  match: z
    .strictObject({
      country: oneOrMany.optional(),
      template: oneOrMany.optional(),
      app: oneOrMany.optional(),
    })
    .default({}),
  use,
})

/** Who is told what has happened; the first that fits an event's app and type gets it. */
const eventReceiver = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  secret: z.string().refine(isUsableSecret, 'not whsec_ and base64, nor 16 characters or more'),
  /** Every type when absent. */
  types: z.array(z.enum(eventTypes)).min(1).optional(),
  /** Every app when absent. */
  app: oneOrMany.optional(),
})

const providerEntry = z
  .looseObject({
    kind: z.string(),
    pace: z.string().optional(),
    quotas: oneOrMany.optional(),
  })
  .transform(({ kind, pace, quotas, ...settings }) => ({ kind, pace, quotas, settings }))

const providers = z.record(
  z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, 'is a short lower-case name'),
  providerEntry,
)

const templatesFolder = z.string().default('./templates')

/** The frame of the file, for the test that holds docs/policy-file.md to it. */
export const policyFileSchema = z.strictObject({
  code: z
    .strictObject({
      length: z.int().min(4).max(10).default(4),
      ttl: duration.default(300_000),
      triesPerCode: z.int().min(1).max(10).default(3),
    })
    .prefault({}),
  notice: z.strictObject({ ttl: duration.default(86_400_000) }).prefault({}),
  recipients: z
    .strictObject({
      /** For numbers written without a country code. */
      defaultCountry: country.optional(),
      /** Where messages may go; everywhere when absent. */
      countries: z.array(country).min(1).optional(),
    })
    .prefault({}),
  policies: z.record(z.string(), z.unknown()),
  templates: templatesFolder,
  providers,
  routes: z.strictObject({ email: z.array(route).default([]), sms: z.array(route).default([]) }),
  events: z.union([eventReceiver.transform((one) => [one]), z.array(eventReceiver)]).default([]),
  retention: z
    .strictObject({
      /** After it a notice keeps no recipient, only its hash. */
      recipient: duration.default(30 * 86_400_000),
      /** After it a notice is gone, as soon as its whole month is. */
      rows: duration.default(180 * 86_400_000),
    })
    .prefault({}),
  delivery: z
    .strictObject({
      /** Tries per notice that use up the budget; a pause asked for by a provider does not. */
      tries: z.int().min(1).max(20).default(5),
      /** Repeats of a notice (a captcha: one) of which nobody can say whether it arrived. */
      unknownRetries: z.int().min(0).max(10).default(1),
      timeout: duration.default(5_000),
      concurrency: z.int().min(1).max(1_000).default(100),
    })
    .prefault({}),
})

export type Route = z.infer<typeof route>

export type EventReceiver = z.infer<typeof eventReceiver>

export interface PolicyFile extends Omit<z.infer<typeof policyFileSchema>, 'templates'> {
  /** Absolute. */
  templatesFolder: string
}

export type PolicyFileResult = { ok: true; file: PolicyFile } | { ok: false; problems: string[] }

export function readPolicyFile(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
  checks: SectionChecks,
): PolicyFileResult {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    return {
      ok: false,
      problems: [`${path} can not be read (${(error as { code?: string }).code})`],
    }
  }
  return parsePolicyFile(text, path, env, checks)
}

/** `path` names the file in messages and is what relative paths in it start from. */
export function parsePolicyFile(
  text: string,
  path: string,
  env: Readonly<Record<string, string | undefined>>,
  checks: SectionChecks,
): PolicyFileResult {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: true,
  })
  const located = (line: number, message: string) => `${path}:${line}: ${message}`
  const lineAt = (offset: number) => lines.linePos(offset).line

  const problems = document.errors.map((error) => located(lineAt(error.pos[0]), error.message))
  // A key that stands there twice leaves the rest readable; anything else does not.
  if (document.errors.some(({ code }) => code !== 'DUPLICATE_KEY')) return { ok: false, problems }

  const unset = new Set<string>()
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value !== 'string') return
      node.value = node.value.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (whole, name: string) => {
        const value = env[name]
        if (value) return value
        unset.add(whole)
        problems.push(
          located(lineAt(node.range?.[0] ?? 0), `${name} is not set in the environment`),
        )
        return whole
      })
    },
  })

  /** The line of the innermost part of `at` that stands in the file. */
  const lineOf = (at: readonly (string | number)[]) => {
    let offset = document.contents?.range?.[0] ?? 0
    for (let depth = 1; depth <= at.length; depth++) {
      const parent = depth === 1 ? document.contents : document.getIn(at.slice(0, depth - 1), true)
      const pair = isMap(parent)
        ? parent.items.find((item) => String(item.key) === String(at[depth - 1]))
        : undefined
      const node = (pair?.key ?? document.getIn(at.slice(0, depth), true)) as
        | { range?: [number] }
        | undefined
      if (!node?.range) break
      offset = node.range[0]
    }
    return lineAt(offset)
  }
  const report = ({ path: at, message }: Finding) => {
    const value = document.getIn(at)
    // That its variable is not set has been said; what its value would be like can't be.
    if (typeof value === 'string' && [...unset].some((name) => value.includes(name))) return
    problems.push(located(lineOf(at), `${at.join('.')}: ${message}`))
  }

  let raw: unknown
  try {
    raw = document.toJS()
  } catch (error) {
    // An alias without its anchor, or aliases of aliases that would fill the memory.
    return { ok: false, problems: [...problems, `${path}: ${(error as Error).message}`] }
  }
  const parsed = policyFileSchema.safeParse(raw)
  for (const issue of parsed.error?.issues ?? []) {
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys)
        report({ path: [...(issue.path as string[]), key], message: 'unknown key' })
    } else report({ path: issue.path as string[], message: issue.message })
  }
  // What is sound in itself is looked into although something else is not.
  const sections = soundSections(raw)
  if (sections.policies !== undefined) {
    for (const { path: at, message } of checks.policies(sections.policies)) {
      report({ path: ['policies', ...at], message })
    }
  }
  for (const [name, entry] of sections.providers) {
    for (const { path: at, message } of checks.provider(name, entry)) {
      report({ path: ['providers', name, ...at], message })
    }
  }
  for (const { path: at, route } of sections.routes) {
    for (const { provider: name } of route.use) {
      const path = [...at, 'use']
      if (!sections.providerNames.includes(name)) {
        report({ path, message: `there is no provider "${name}"` })
        continue
      }
      const kind = sections.providers.get(name)?.kind
      if (kind !== undefined && !checks.channelsOf(kind).includes(String(at[1]))) {
        report({ path, message: `provider "${name}" carries no ${at[1]}` })
      }
    }
  }
  if (sections.templates !== undefined) {
    const templates = checks.templates(resolve(dirname(path), sections.templates))
    if ('problems' in templates) problems.push(...templates.problems)
    else {
      for (const { path: at, template } of templatesNamedIn(sections)) {
        if (!templates.has(template)) {
          report({ path: at, message: `there is no template "${template}"` })
        }
      }
    }
  }
  if (!parsed.success || problems.length > 0) return { ok: false, problems }
  const { templates, ...file } = parsed.data
  return { ok: true, file: { ...file, templatesFolder: resolve(dirname(path), templates) } }
}

interface Sections {
  /** Undefined when it is no list of policies at all. */
  readonly policies: unknown
  /** Those that have the shape of one. */
  readonly providers: ReadonlyMap<string, ProviderEntry>
  /** The others too. */
  readonly providerNames: readonly string[]
  readonly routes: readonly { path: ['routes', Channel, number]; route: Route }[]
  readonly templates: string | undefined
}

/** The parts of a file that have their right shape, whatever the others are like. */
function soundSections(raw: unknown): Sections {
  const { policies, providers, routes, templates } = asRecord(raw)
  const routesOf = (channel: Channel) => {
    const list = asRecord(routes)[channel]
    return (Array.isArray(list) ? list : []).flatMap((each: unknown, index) => {
      const parsed = route.safeParse(each)
      return parsed.success
        ? [
            {
              path: ['routes', channel, index] as Sections['routes'][number]['path'],
              route: parsed.data,
            },
          ]
        : []
    })
  }
  return {
    policies: isRecord(policies) ? policies : undefined,
    providers: new Map(
      Object.entries(asRecord(providers)).flatMap(([name, entry]) => {
        const parsed = providerEntry.safeParse(entry)
        return parsed.success ? [[name, parsed.data] as const] : []
      }),
    ),
    providerNames: Object.keys(asRecord(providers)),
    routes: [...routesOf('email'), ...routesOf('sms')],
    templates: templatesFolder.safeParse(templates).data,
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const asRecord = (value: unknown) => (isRecord(value) ? value : {})

/** Routes name templates, and so do providers that send by templates of their own. */
function templatesNamedIn({ providers, routes }: Sections) {
  return [
    ...[...providers].flatMap(([name, { settings }]) =>
      Object.keys(asRecord(settings.templates)).map((template) => ({
        path: ['providers', name, 'templates', template],
        template,
      })),
    ),
    ...routes.flatMap(({ path, route }) =>
      (route.match.template ?? []).map((template) => ({
        path: [...path, 'match', 'template'],
        template,
      })),
    ),
  ]
}

/**
 * The sections in which two files differ, as an operator would point at them: `code`, `providers.mail`,
 * `routes.sms`.
 */
export function changedSections(before: PolicyFile, after: PolicyFile): string[] {
  const [old, now] = [sectionsByName(before), sectionsByName(after)]
  return [...new Set([...old.keys(), ...now.keys()])].filter(
    (name) => !isDeepStrictEqual(old.get(name), now.get(name)),
  )
}

function sectionsByName({ providers, routes, templatesFolder, ...others }: PolicyFile) {
  const within = (name: string, section: object) =>
    Object.entries(section).map(([key, value]) => [`${name}.${key}`, value] as const)
  return new Map<string, unknown>([
    ...Object.entries(others),
    ...within('providers', providers),
    ...within('routes', routes),
    ['templates', templatesFolder],
  ])
}
