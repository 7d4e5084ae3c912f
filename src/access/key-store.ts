/**
 * The rows of API keys: `npm run keys` makes, lists, ends and replaces them. A key has 32 random bytes and is shown
 * once. Its row stores the SHA-256, which costs a microsecond and is enough for a secret that can't be guessed.
 *
 * PostgreSQL's clock decides when a key ends. If the clock of the operator's machine decided, a key could live hours
 * too long.
 */
import { hash } from 'node:crypto'
import { newId } from '../base/ids.ts'
import { everyApp } from '../base/names.ts'
import type { Database } from '../storage/database.ts'
import { createKeyToken, type KeyKind, keyKindOf, shownPrefixOf } from './key-token.ts'

export interface NewKey {
  name: string
  app: string
  /** `secret` by default. */
  kind?: KeyKind
  /** Spelled as by `parseOrigins`. Required for publishable keys. */
  origins?: readonly string[]
  /** The key ends after this time; never if absent. */
  livesMs?: number | undefined
}

export interface KeyFacts {
  id: string
  app: string
  kind: KeyKind
  origins: string[]
  name: string
  /** The start of the key; empty for a key from the operator's environment. */
  prefix: string
  createdAt: Date
  /** The end of the key, set by `revoke`, by `rotate` or when the key was made. May be in the future. */
  revokedAt: Date | null
  isRevoked: boolean
  /** The key ends within a week by the end that was set when it was made. False if `revoke` or `rotate` has set another. */
  endsSoon: boolean
  /** Written at most once a minute by each process. */
  lastUsedAt: Date | null
}

export type Rotation =
  | { kind: 'rotated'; id: string; token: string; successorOf: KeyFacts }
  | { kind: 'unknown' }
  /** The key was revoked, or is already being replaced. */
  | { kind: 'ending'; at: Date; isRevoked: boolean }

export function createKeyStore(database: Database) {
  const idNow = () => newId(database.nowMs())

  /** Does nothing if the key exists already, also if another process makes it meanwhile. */
  async function insert(token: string, key: NewKey): Promise<string> {
    const { name, app, kind = 'secret', origins = [], livesMs = null } = key
    if ((kind === 'publishable') !== origins.length > 0) {
      throw new Error('a publishable key needs origins, and other keys have none')
    }
    const id = idNow()
    const prefix = keyKindOf(token) ? shownPrefixOf(token) : ''
    const values = [id, app, name, kind, hashOf(token), prefix, origins, livesMs]
    await database.query('api-key-insert', insertSql, values)
    return id
  }

  async function findById(id: string): Promise<KeyFacts | undefined> {
    const [key] = await database.query<KeyFacts>('api-key-get', `${factsSql} WHERE id = $1`, [id])
    return key
  }

  return {
    insert,

    /** Finds revoked keys too. */
    findById,

    /** Every app that has or had keys, except `*`. */
    async apps(): Promise<string[]> {
      const rows = await database.query<{ app: string }>('api-key-apps', appsSql, [everyApp])
      return rows.map(({ app }) => app)
    },

    /** Makes a key and returns it. It can't be read again. */
    async create(key: NewKey): Promise<{ id: string; token: string }> {
      const token = createKeyToken(key.kind ?? 'secret')
      return { id: await insert(token, key), token }
    },

    /** All keys, newest first, revoked keys included. */
    list: () => database.query<KeyFacts>('api-key-list', `${factsSql} ORDER BY id DESC`, []),

    /** Ends the key now. False for an unknown key; revoking twice is fine. */
    async revoke(id: string): Promise<boolean> {
      return (await database.query('api-key-revoke', revokeSql, [id])).length > 0
    },

    /** Makes a new key of the same kind, app, name, origins and time to live, and ends this one after `overlapMs`. */
    async rotate(id: string, overlapMs: number): Promise<Rotation> {
      const before = await findById(id)
      if (!before) return { kind: 'unknown' }
      const token = createKeyToken(before.kind)
      const newKeyId = idNow()
      const values = [id, overlapMs, newKeyId, hashOf(token), shownPrefixOf(token)]
      const rotated = await database.query('api-key-rotate', rotateSql, values)
      const old = await findById(id)
      if (!old?.revokedAt) return { kind: 'unknown' }
      return rotated.length > 0
        ? { kind: 'rotated', id: newKeyId, token, successorOf: old }
        : { kind: 'ending', at: old.revokedAt, isRevoked: old.isRevoked }
    },
  }
}

export const hashOf = (token: string): Buffer => hash('sha256', token, 'buffer')

/** The end of a key. LEAST ignores NULL, and is NULL for a key without an end. */
export const endsAt = 'LEAST(revoked_at, expires_at)'
/** True for a key that has not ended. */
export const isActive = `(${endsAt} IS NULL OR ${endsAt} > now())`

const factsSql = `
  SELECT id, app, kind, origins, name, prefix, created_at AS "createdAt", ${endsAt} AS "revokedAt",
         NOT ${isActive} AS "isRevoked", last_used_at AS "lastUsedAt",
         coalesce(revoked_at IS NULL AND expires_at <= now() + interval '7 days', false) AS "endsSoon"
  FROM api_key`

const appsSql = 'SELECT DISTINCT app FROM api_key WHERE app <> $1 ORDER BY app'

const insertSql = `
  INSERT INTO api_key (id, app, name, kind, hash, prefix, origins, created_at, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, now(), now() + $8::float8 * interval '1 millisecond')
  ON CONFLICT (hash) DO NOTHING`

// LEAST ignores NULL. An earlier end of a key stays, unless it is in the future. The column has whole milliseconds.
// Without date_trunc, now() would be rounded up half of the time, and the key would still work for that moment.
const revokeSql = `
  UPDATE api_key SET revoked_at = LEAST(revoked_at, date_trunc('milliseconds', now()))
  WHERE id = $1 RETURNING id`

// One statement, so a key never ends without its successor. If two processes rotate it, only one makes a new key.
const rotateSql = `
  WITH old AS (
    UPDATE api_key SET revoked_at = now() + $2 * interval '1 millisecond'
    WHERE id = $1 AND revoked_at IS NULL AND ${isActive}
    RETURNING app, name, kind, origins, expires_at - created_at AS lives
  )
  INSERT INTO api_key (id, app, name, kind, origins, hash, prefix, created_at, expires_at)
  SELECT $3, app, name, kind, origins, $4, $5, now(), now() + lives FROM old
  RETURNING id`
