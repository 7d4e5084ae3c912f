import { commandLine } from '../base/command-line.ts'
import { about, type Finding } from '../base/finding.ts'
import type { KeyKind } from './key-token.ts'

export interface ListedKey {
  readonly name: string
  readonly kind: KeyKind
  readonly origins: readonly string[]
  readonly isRevoked: boolean
  readonly endsSoon: boolean
}

const local = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/

export function examineKeys(all: readonly ListedKey[]): Finding[] {
  const { ok, warning } = about('keys')
  const active = all.filter(({ isRevoked }) => !isRevoked)
  if (active.length === 0) {
    return [warning('there is no API key', commandLine('keys', 'create --name web'))]
  }
  const plain = active.flatMap(({ name, origins }) =>
    origins
      .filter((origin) => origin.startsWith('http:'))
      .map((origin) => {
        const page = local.test(origin) ? 'a page of this machine' : 'a page without TLS'
        const message = `publishable key "${name}" may be used by ${page}, ${origin}`
        return warning(message, 'in production list only https:// origins')
      }),
  )
  const ending = active
    .filter(({ endsSoon }) => endsSoon)
    .map(({ name }) =>
      warning(
        `the key "${name}" ends within a week`,
        `${commandLine('keys', 'rotate ID')}, with its id from the list`,
      ),
    )
  const found = [...plain, ...ending]
  return found.length > 0 ? found : [ok(`${active.length} active, no page without TLS`)]
}
