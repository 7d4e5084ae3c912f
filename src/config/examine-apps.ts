import { about, type Finding } from '../base/finding.ts'
import { type PageRules, pageCheckPolicy, pagePolicy } from '../rules/policies.ts'
import type { PolicyFile } from './policy-schema.ts'

/** Of the policies whose counts are about people: a count without an app is seen, moved and forgotten by every app's keys. */
export function examineApps(
  file: { policies: PolicyFile['policies']; browser: PageRules },
  appsOfKeys: readonly string[],
): Finding[] {
  const { ok, warning } = about('apps')
  const apps = new Set(appsOfKeys)
  if (apps.size < 2) return [ok('no more than one has keys')]
  const { captcha, notice, check } = file.policies
  const { rules, checkRules } = file.browser
  const ofPages = { [pagePolicy]: rules, [pageCheckPolicy]: checkRules }
  const declared = Object.entries({ captcha, notice, check, ...ofPages })
  const shared = declared.flatMap(([policy, rules]) =>
    ((rules ?? []) as readonly { name?: unknown; key?: unknown }[])
      .filter(({ key }) => !/\{(app|keyId)\}/.test(String(key)))
      .map(({ name }) => `${policy}.${name}`),
  )
  if (shared.length === 0) return [ok(`${apps.size}, and every rule counts each alone`)]
  const message = `${apps.size} apps share the counts of ${shared.join(', ')}: a key of one sees and resets those of all`
  return [warning(message, 'put {app} in their keys, unless that is meant')]
}
