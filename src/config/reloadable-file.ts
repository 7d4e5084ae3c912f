/** The policy file, and the sections of it that a SIGHUP replaces. */
import { isDeepStrictEqual } from 'node:util'
import type { PolicyFile } from './policy-schema.ts'

/** The names of sections in which two files differ: `code`, `providers.mail`, `routes.sms`. */
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

/**
 * The running file with these sections of `next`: policies and prices, refused recipients, durations of suppressions, and
 * registered senders. Of a provider that both files have, also `pace`, `quotas` and `disabled`.
 */
function withRulesOf(next: PolicyFile, running: PolicyFile): PolicyFile {
  const providers = Object.entries(running.providers).map(([name, entry]) => {
    const { pace, quotas, disabled } = next.providers[name] ?? entry
    return [name, { ...entry, pace, quotas, disabled }] as const
  })
  const { rules, checkRules } = next.browser
  const browser = { ...running.browser, rules, checkRules }
  const { policies, prices, senders } = next
  const { refuse, suppress } = next.recipients
  const recipients = { ...running.recipients, refuse, suppress }
  return {
    ...{ ...running, policies, browser, prices, recipients, senders },
    providers: Object.fromEntries(providers),
  }
}

/** The policy file in force. A reload replaces only the sections that can change without a restart. */
export function createReloadableFile(file: PolicyFile) {
  let running = file
  const reloaders: ((next: PolicyFile) => void)[] = []
  return {
    file: () => running,
    /** After a reload, calls `take` with the file that is now in force. Earlier registrations are called first. */
    onReload(take: (next: PolicyFile) => void): void {
      reloaders.push(take)
    },
    /** Returns the sections that are reloaded, and the sections that need a restart. If `take` throws, nothing changes. */
    reload(next: PolicyFile): { reloaded: string[]; needRestart: string[] } {
      const before = running
      const after = withRulesOf(next, before)
      for (const take of reloaders) take(after)
      running = after
      return {
        reloaded: changedSections(before, running),
        needRestart: changedSections(running, next),
      }
    },
  }
}
