/** What is different in a policy file that is read again. */
import { isDeepStrictEqual } from 'node:util'
import type { PolicyFile } from './policy-schema.ts'

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
