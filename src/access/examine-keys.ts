import { about, type Finding } from '../base/finding.ts'
import type { KeyKind } from './key-token.ts'

export interface ListedKey {
  readonly name: string
  readonly kind: KeyKind
  readonly origins: readonly string[]
  readonly isRevoked: boolean
}

const local = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/

export function examineKeys(all: readonly ListedKey[]): Finding[] {
  const { ok, warning } = about('keys')
  const active = all.filter(({ isRevoked }) => !isRevoked)
  if (active.length === 0) {
    return [warning('there is no API key', 'npm run keys -- create --name web')]
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
  return plain.length > 0 ? plain : [ok(`${active.length} active, no page without TLS`)]
}
