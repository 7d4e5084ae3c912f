/** Rules for a new API key and for its replacement: names, kinds, origins and times. */
import { formatDuration, parseDurationMs } from '../base/durations.ts'
import { appName, everyApp } from '../base/names.ts'
import type { NewKey } from './key-store.ts'
import { type KeyKind, keyKinds } from './key-token.ts'
import { type ParsedOrigins, parseOrigins } from './origins.ts'

export interface KeyWish {
  name?: string | undefined
  app?: string | undefined
  kind?: string | undefined
  origin?: readonly string[] | undefined
  expires?: string | undefined
}

type Respelled = Extract<ParsedOrigins, { ok: true }>['respelled']

export type ReadWish =
  | { ok: true; key: NewKey & { kind: KeyKind; origins: string[] }; respelled: Respelled }
  | { ok: false; problem: string }

const dayMs = 86_400_000
const maxLifeMs = 3_650 * dayMs
const maxOverlapMs = 90 * dayMs

/**
 * Without an app, the app has the name of the key, and an operator key sees every app. Without a name, the key has the name of its
 * app, or `default`.
 */
export function readKeyWish({ kind = 'secret', ...wish }: KeyWish): ReadWish {
  const refused = (problem: string): ReadWish => ({ ok: false, problem })
  const name = wish.name ?? wish.app ?? 'default'
  const misnamed = [name, wish.app ?? name].find((text) => !appName.safeParse(text).success)
  if (misnamed !== undefined) {
    return refused(
      `"${misnamed}" is not a valid name of a key or an app. A name has 1 to 32 of a-z, 0-9, _ and -, and begins with a letter or digit.`,
    )
  }
  if (!isKind(kind)) {
    return refused(`"${kind}" is not a kind of key. Use one of ${keyKinds.join(', ')}.`)
  }
  const parsed = parseOrigins(wish.origin ?? [])
  if (!parsed.ok) return refused(parsed.problems.join('\n'))
  const { origins, respelled } = parsed
  if (kind === 'publishable' && origins.length === 0) {
    return refused(
      'A publishable key needs the origins of its pages. Add --origin https://shop.example',
    )
  }
  if (kind !== 'publishable' && origins.length > 0) {
    return refused(
      `Only publishable keys have origins. Never put a ${kind} key in a page; remove --origin.`,
    )
  }
  const livesMs = wish.expires === undefined ? undefined : parseDurationMs(wish.expires)
  if (wish.expires !== undefined && livesMs === undefined) {
    return refused(notDuration('expires', wish.expires, maxLifeMs))
  }
  const app = wish.app ?? (kind === 'operator' ? everyApp : name)
  return { ok: true, key: { name, app, kind, origins, livesMs }, respelled }
}

/** How long a replaced key still works; `0s`: it ends at once. */
export function readOverlap(
  text = '24h',
): { ok: true; overlapMs: number } | { ok: false; problem: string } {
  const overlapMs = text === '0s' ? 0 : parseDurationMs(text)
  return overlapMs === undefined || overlapMs > maxOverlapMs
    ? { ok: false, problem: notDuration('overlap', text, maxOverlapMs) }
    : { ok: true, overlapMs }
}

function isKind(text: string): text is KeyKind {
  return (keyKinds as readonly string[]).includes(text)
}

function notDuration(option: string, text: string, maxMs: number): string {
  return `--${option} "${text}" is not a duration such as 30m, 24h or 7d, at most ${formatDuration(maxMs)}.`
}
