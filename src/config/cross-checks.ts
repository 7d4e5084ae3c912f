/**
 * Checks beyond schemas: whether the parts of a policy file fit each other, and whether the rooms that use them accept
 * them. Correct parts are checked even if other parts are wrong, so that one start reports every problem.
 */
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { type Channel, channels } from '../base/channel.ts'
import { isObject } from '../base/json.ts'
import { problemsOfPolicies } from '../rules/policy-problems.ts'
import { carrierProblems, type TemplateTexts } from './carrier-problems.ts'
import type { FileProblem } from './located-yaml.ts'
import {
  codeLength,
  type ProviderEntry,
  providerEntry,
  route,
  templatesFolder,
  testRecipient,
} from './policy-schema.ts'

/** The checks by the rooms that use a section. The problems have paths within that section. */
export interface SectionChecks {
  /** Loads a plugin, named in the file at `path`, before all other checks. Returns the problem, or undefined. */
  plugin(specifier: string, path: string): Promise<string | undefined>
  /** Sets up a façade of `compat`. Paths are relative to its section. */
  facade(name: string, settings: unknown): FileProblem[]
  /** The policies of the plugins and façades so far. */
  ownPolicies(): Readonly<Record<string, unknown>>
  /** Paths of problems are relative to the provider's section. `path` is the path of the file. */
  provider(name: string, entry: ProviderEntry, path: string): FileProblem[]
  /** The channels of a provider whose section was checked before. */
  channelsOf(name: string, kind: string): readonly string[]
  /** The normalised form of a test recipient; undefined for a text that is neither number nor address. */
  readRecipient(to: string, defaultCountry: string | undefined): string | undefined
  /** The number, or the mailbox of the address; undefined for a text that is neither. */
  readMailbox(to: string, defaultCountry: string | undefined): string | undefined
  templates(folder: string): TemplateTexts | { problems: readonly string[] }
  /** True: the rules of carriers are not checked. */
  leavesOutCarriers?: boolean
}

export async function crossCheck(
  raw: unknown,
  checks: SectionChecks,
  path: string,
): Promise<{ found: FileProblem[]; templateProblems: readonly string[] }> {
  const sections = soundSections(raw)
  const found = [
    ...(await pluginProblems(sections, checks, path)),
    ...facadeProblems(asRecord(raw), checks),
    ...policyProblems(sections, checks.ownPolicies()),
    ...providerProblems(sections, checks, path),
    ...routeProblems(sections, checks),
    ...[...testingProblems(sections, checks), ...workflowProblems(raw)],
  ]
  if (sections.templates === undefined) return { found, templateProblems: [] }
  const folder = resolve(dirname(path), sections.templates)
  const templates = checks.templates(folder)
  if ('problems' in templates) return { found, templateProblems: templates.problems }
  const unknown = templatesNamedIn(sections).filter(({ template }) => !templates.has(template))
  const ofTemplates = unknown.map(({ path, template }) => ({
    path,
    message: `there is no template "${template}"`,
  }))
  const byCarriers = checks.leavesOutCarriers
    ? []
    : carrierProblems({ ...sections, raw, templates, folder })
  const all = [...found, ...ofTemplates, ...linkProblems(raw, templates), ...byCarriers]
  return { found: all, templateProblems: [] }
}

/** One plugin after the other: if two bring a kind of the same name, the second is reported. */
async function pluginProblems(
  { plugins }: Sections,
  checks: SectionChecks,
  path: string,
): Promise<FileProblem[]> {
  const found: FileProblem[] = []
  for (const [index, specifier] of plugins.entries()) {
    const message = typeof specifier === 'string' ? await checks.plugin(specifier, path) : undefined
    if (message !== undefined) found.push({ path: ['plugins', index], message })
  }
  return found
}

function facadeProblems(
  { compat }: Readonly<Record<string, unknown>>,
  checks: SectionChecks,
): FileProblem[] {
  return Object.entries(asRecord(compat)).flatMap(([name, settings]) =>
    checks.facade(name, settings).map(below('compat', name)),
  )
}

/** The policies of plugins are checked together with the file's policies, which they may include. */
function policyProblems(sections: Sections, ofPlugins: Readonly<Record<string, unknown>>) {
  const { policies } = sections
  if (!policies) return []
  const taken = Object.keys(ofPlugins).filter((name) => Object.hasOwn(policies, name))
  return [
    ...taken.map((name) => ({
      path: ['policies', name],
      message: 'is the name of a policy of a plugin; choose another name',
    })),
    ...problemsOfPolicies({ ...sections, policies: { ...policies, ...ofPlugins } }),
  ]
}

function providerProblems(
  { providers }: Sections,
  checks: SectionChecks,
  file: string,
): FileProblem[] {
  return [...providers].flatMap(([name, entry]) =>
    checks.provider(name, entry, file).map(below('providers', name)),
  )
}

function routeProblems(sections: Sections, checks: SectionChecks): FileProblem[] {
  return sections.routes.flatMap(({ path, route }) =>
    route.use.flatMap(({ provider: name }) => {
      const [, channel] = path
      if (!sections.providerNames.includes(name)) {
        return [{ path: [...path, 'use'], message: `there is no provider "${name}"` }]
      }
      const kind = sections.providers.get(name)?.kind
      const isCarrying = kind === undefined || checks.channelsOf(name, kind).includes(channel)
      return isCarrying
        ? []
        : [{ path: [...path, 'use'], message: `provider "${name}" cannot send ${channel}` }]
    }),
  )
}

function testingProblems(sections: Sections, checks: SectionChecks): FileProblem[] {
  const { testRecipients, defaultCountry, codeDigits } = sections
  const known = new Set<string>()
  return testRecipients.flatMap(({ to, code }, index): FileProblem[] => {
    const found: FileProblem[] = []
    const report = (key: 'to' | 'code', message: string) =>
      found.push({ path: ['testing', 'recipients', index, key], message })
    const recipient = checks.readRecipient(to, defaultCountry)
    if (recipient === undefined) report('to', 'is neither a phone number nor a mail address')
    else if (known.has(recipient)) report('to', 'is in the list twice')
    else known.add(recipient)
    if (codeDigits !== undefined && code.length !== codeDigits) {
      report('code', `has ${code.length} digits, and code.length is ${codeDigits}`)
    }
    return found
  })
}

type Sections = ReturnType<typeof soundSections>

/** The parts of a file with the right shape, even if others are wrong. */
function soundSections(raw: unknown) {
  const file = asRecord(raw)
  const { policies, prices, browser, providers, routes, templates } = file
  const { testing, code, recipients, plugins } = file
  const { rules, checkRules, templates: pageTemplates } = asRecord(browser)
  const { recipients: testRecipients } = asRecord(testing)
  const { defaultCountry } = asRecord(recipients)
  const routesOf = (channel: Channel) =>
    listIn(asRecord(routes)[channel]).flatMap((each, index) => {
      const { data } = route.safeParse(each)
      return data ? [{ path: ['routes', channel, index] as const, route: data }] : []
    })
  return {
    plugins: listIn(plugins),
    /** Undefined if the section has the wrong shape. */
    policies: isObject(policies) ? policies : undefined,
    pageRules: { rules: listIn(rules), checkRules: listIn(checkRules) },
    prices: isObject(prices) ? pricesIn(prices) : undefined,
    pageTemplates: listIn(pageTemplates),
    /** Only providers whose section has the right shape. */
    providers: new Map(
      Object.entries(asRecord(providers)).flatMap(([name, entry]) => {
        const { data } = providerEntry.safeParse(entry)
        return data ? [[name, data] as const] : []
      }),
    ),
    /** All names, also of malformed providers. */
    providerNames: Object.keys(asRecord(providers)),
    routes: channels.flatMap(routesOf),
    templates: templatesFolder.safeParse(templates).data,
    testRecipients: z.array(testRecipient).safeParse(testRecipients).data ?? [],
    defaultCountry: z.string().safeParse(defaultCountry).data,
    codeDigits: codeLength.safeParse(asRecord(code).length).data,
  }
}

/** Only numeric prices. The schema reports other values. */
function pricesIn(prices: Readonly<Record<string, unknown>>): Record<string, number> {
  const isNumber = (entry: [string, unknown]): entry is [string, number] =>
    Number.isFinite(entry[1])
  return Object.fromEntries(Object.entries(prices).filter(isNumber))
}

function linkProblems(raw: unknown, { bareLinks }: TemplateTexts): FileProblem[] {
  if (Object.keys(asRecord(asRecord(raw).links)).length > 0) return []
  const message =
    'no scene has a link: set links in the policy file, or put {{link}} between {{#link}} and {{/link}}'
  return bareLinks.map((place) => ({ path: ['templates'], place, message }))
}

/** Pages may name only workflows that exist. */
function workflowProblems(raw: unknown): FileProblem[] {
  const { workflows, browser } = asRecord(raw)
  return listIn(asRecord(browser).workflows).flatMap((name, index) =>
    typeof name !== 'string' || Object.hasOwn(asRecord(workflows), name)
      ? []
      : [{ path: ['browser', 'workflows', index], message: `there is no workflow "${name}"` }],
  )
}

/** Puts the place of a section before the path of a problem. */
const below =
  (...place: string[]) =>
  ({ path, message }: FileProblem): FileProblem => ({ path: [...place, ...path], message })

const asRecord = (value: unknown) => (isObject(value) ? value : {})
const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Templates named in `browser`, in routes, and in providers with their own templates. */
function templatesNamedIn({ pageTemplates, providers, routes }: Sections) {
  return [
    ...pageTemplates.flatMap((template, index) =>
      typeof template === 'string' ? [{ path: ['browser', 'templates', index], template }] : [],
    ),
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
