/**
 * Reads `postern.yaml`. Reports every problem with its line, because one error per restart would cost an operator
 * hours.
 *
 * This room knows the frame of the file. The contents of `policies` and of a provider are checked by the rooms that
 * use them, through `checks`. Those problems get their lines here.
 */
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { z } from 'zod'
import { missingInWords, schemaProblems } from '../base/schema-problems.ts'
import { crossCheck, type SectionChecks } from './cross-checks.ts'
import { type FileProblem, parseLocatedYaml } from './located-yaml.ts'
import { type PolicyFile, policyFileSchema } from './policy-schema.ts'
import { readRefused } from './refused-recipients.ts'

export type PolicyFileResult =
  | { ok: true; file: PolicyFile; warnings: string[] }
  | { ok: false; problems: string[] }

export async function readPolicyFile(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
  checks: SectionChecks,
): Promise<PolicyFileResult> {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch (error) {
    return {
      ok: false,
      problems: [`${path} cannot be read (${(error as { code?: string }).code})`],
    }
  }
  if (!isUtf8(bytes)) return { ok: false, problems: [`${path} is not UTF-8; save it as UTF-8`] }
  return parsePolicyFile(bytes.toString(), path, env, checks)
}

/** `path` names the file in messages and is the base of relative paths in it. */
export async function parsePolicyFile(
  text: string,
  path: string,
  env: Readonly<Record<string, string | undefined>>,
  checks: SectionChecks,
): Promise<PolicyFileResult> {
  const yaml = parseLocatedYaml(text, path, env)
  if (!yaml.ok) return yaml
  const mistake = findMistake(yaml.value)
  if (mistake) {
    yaml.report({ path: [], message: mistake })
    return { ok: false, problems: yaml.problems }
  }
  const parsed = policyFileSchema.safeParse(yaml.value, inWords)
  const { found, templateProblems } = await crossCheck(yaml.value, checks, path)
  const { recipients } = parsed.data ?? {}
  const refused = await readRefused(recipients?.refuse ?? [], dirname(path), (to) =>
    checks.readMailbox(to, recipients?.defaultCountry),
  )
  for (const problem of [...schemaProblems(parsed.error), ...found, ...refused.found]) {
    yaml.report(problem)
  }
  const problems = [...yaml.problems, ...templateProblems]
  if (!parsed.success || problems.length > 0) return { ok: false, problems }
  const { templates, policies, ...file } = parsed.data
  return {
    ok: true,
    warnings: yaml.warnings,
    file: {
      ...file,
      policies: { ...policies, ...checks.ownPolicies() },
      recipients: { ...file.recipients, refuse: refused.list },
      templatesFolder: resolve(dirname(path), templates),
    },
  }
}

/** Why a file has no sections; undefined if it has. */
function findMistake(value: unknown): string | undefined {
  if (value === null) return 'is empty; postern.yaml of this version is an example'
  return typeof value === 'object' && !Array.isArray(value)
    ? undefined
    : 'must have sections, such as policies: and providers:'
}

/**
 * The problems of a section that a provider kind or façade reads. Its paths are relative to the settings. `use` gets valid
 * settings. A plugin's schema can throw.
 */
export function settingsProblems<Settings>(
  kind: {
    readonly settings: z.ZodType<Settings>
    settingsIn?(folder: string): z.ZodType<Settings>
  },
  given: unknown,
  use: (settings: Settings) => unknown,
  policyPath = '',
): FileProblem[] {
  try {
    const schema = kind.settingsIn?.(dirname(policyPath)) ?? kind.settings
    const parsed = schema.safeParse(given, missingInWords)
    if (!parsed.success) return schemaProblems(parsed.error)
    use(parsed.data)
    return []
  } catch (error) {
    const message = `the settings of this kind cannot be checked: ${(error as Error).message}`
    return [{ path: ['kind'], message }]
  }
}

/** YAML reads `0123`, `+49…` and `true` without quotes as numbers and truth values. */
const inWords = {
  error(issue: { code?: string; expected?: string; input?: unknown }) {
    const { expected, input } = issue
    const isBare = typeof input === 'number' || typeof input === 'boolean'
    return expected === 'string' && isBare
      ? 'must be a text; put it in quotes'
      : missingInWords.error(issue)
  },
}
