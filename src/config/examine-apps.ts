import { about, type Finding } from '../base/finding.ts'
import { policiesInForce } from '../rules/in-force.ts'
import { rulesInUse } from '../rules/policies.ts'
import type { PolicyFile } from './policy-schema.ts'

/**
 * Finds rules for sends and checks that all apps share. Without `app` in the key of a rule, the keys of every app can see,
 * change and reset its counts.
 */
export function examineApps(
  file: Pick<PolicyFile, 'policies' | 'browser' | 'testing'>,
  appsOfKeys: readonly string[],
): Finding[] {
  const { ok, warning } = about('apps')
  const apps = new Set(appsOfKeys)
  if (apps.size < 2) return [ok('only one app has keys')]
  const shared = rulesInUse(policiesInForce(file).policies)
    .filter(({ fields }) => !fields.includes('app') && !fields.includes('keyId'))
    .map(({ policy, name }) => `${policy}.${name}`)
  if (shared.length === 0) return [ok(`${apps.size} apps, and every rule counts them separately`)]
  const message = `${apps.size} apps share the counts of ${shared.join(', ')}, so a key of one app sees and resets the counts of all`
  return [warning(message, 'add {app} to their keys, unless this is intended')]
}
