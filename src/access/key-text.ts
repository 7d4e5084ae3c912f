/** Keys as `npm run keys` prints them. */
import { everyApp } from '../base/names.ts'
import type { KeyFacts } from './key-store.ts'

/** A key that was just made, with its token. */
export function newKeyText(
  made: Pick<KeyFacts, 'id' | 'kind' | 'app' | 'origins'> & { token: string },
): string {
  const { id, kind, app, origins, token } = made
  const lines = [`id:  ${id}`, `app: ${app === everyApp ? '* (every app)' : app}`, `key: ${token}`]
  if (origins.length > 0) lines.push(`origins: ${origins.join(' ')}`)
  const use = kind === 'publishable' ? 'Use it in pages of these origins.' : 'Keep it secret.'
  return [...lines, '', `The key is shown only now. ${use}`].join('\n')
}

/** A line of the list of keys. */
export function keyLine(key: KeyFacts): string {
  const columns = [
    key.id,
    key.kind,
    key.prefix ? `${key.prefix}…` : '-',
    `name=${key.name}`,
    `app=${key.app}`,
    ...(key.origins.length > 0 ? [`origins=${key.origins.join(',')}`] : []),
    `made ${key.createdAt.toISOString()}`,
    key.lastUsedAt ? `used ${key.lastUsedAt.toISOString()}` : 'never used',
    stateOf(key),
  ]
  return columns.join('  ')
}

function stateOf({ revokedAt, isRevoked }: KeyFacts): string {
  if (!revokedAt) return 'active'
  return `${isRevoked ? 'ended' : 'ends'} ${revokedAt.toISOString()}`
}
