/**
 * The rows of API keys: what `npm run keys` makes, lists, ends and replaces. A key holds 32 random bytes and is
 * shown once; its row holds the SHA-256, which is enough for a secret that can't be guessed and costs a
 * microsecond.
 *
 * When a key ends is PostgreSQL's to say: the clock of whoever revokes it may be hours ahead, and the key would
 * live on for as long.
 */
import { hash } from 'node:crypto'
import { newId } from '../base/ids.ts'
import type { Database } from '../storage/database.ts'
import { createKeyToken, type KeyKind, keyKindOf, shownPrefixOf } from './key-token.ts'

/** In the place of an app: an operator's key that sees all of them. */
export const everyApp = '*'

export interface NewKey {
  name: string
  app: string
  /** `secret` by default. */
  kind?: KeyKind
  /** As `parseOrigins` spells them; a publishable key needs one. */
  origins?: readonly string[]
}

export interface KeyFacts {
  id: string
  app: string
  kind: KeyKind
  origins: string[]
  name: string
  /** What it begins with; empty for one that the operator made up. */
  prefix: string
  createdAt: Date
  /** May lie ahead. */
  revokedAt: Date | null
  isRevoked: boolean
  /** To the minute. */
  lastUsedAt: Date | null
}

export type Rotation =
  | { kind: 'rotated'; id: string; token: string; successorOf: KeyFacts }
  | { kind: 'unknown' }
  /** It was revoked, or is being replaced already. */
  | { kind: 'ending'; at: Date; isRevoked: boolean }

export function createKeyStore(database: Database) {
  const idNow = () => newId(database.nowMs())

  /** Leaves a key that is there already as it is, also one that another process makes meanwhile. */
  async function insert(token: string, key: NewKey): Promise<string> {
    const { name, app, kind = 'secret', origins = [] } = key
    if ((kind === 'publishable') !== origins.length > 0) {
      throw new Error('a publishable key has origins, and no other has')
    }
    const id = idNow()
    const prefix = keyKindOf(token) ? shownPrefixOf(token) : ''
    const values = [id, app, name, kind, hashOf(token), prefix, origins]
    await database.query('api-key-insert', insertSql, values)
    return id
  }

  async function findById(id: string): Promise<KeyFacts | undefined> {
    const [key] = await database.query<KeyFacts>('api-key-get', `${factsSql} WHERE id = $1`, [id])
    return key
  }

  return {
    insert,

    /** Also a revoked one. */
    findById,

    /** Every app that has or had keys; those of operators who see every app have none of their own. */
    async apps(): Promise<string[]> {
      const rows = await database.query<{ app: string }>('api-key-apps', appsSql, [everyApp])
      return rows.map(({ app }) => app)
    },

    /** Makes a key and returns it; it can't be read again. */
    async create(key: NewKey): Promise<{ id: string; token: string }> {
      const token = createKeyToken(key.kind ?? 'secret')
      return { id: await insert(token, key), token }
    },

    /** Newest first, revoked ones included. */
    list: () => database.query<KeyFacts>('api-key-list', `${factsSql} ORDER BY id DESC`, []),

    /** Ends it now. False when there is no such key; revoking twice is fine. */
    async revoke(id: string): Promise<boolean> {
      return (await database.query('api-key-revoke', revokeSql, [id])).length > 0
    },

    /** Makes another of the same kind, app, name and origins, and ends this one once `overlapMs` are over. */
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

const factsSql = `
  SELECT id, app, kind, origins, name, prefix, created_at AS "createdAt", revoked_at AS "revokedAt",
         coalesce(revoked_at <= now(), false) AS "isRevoked", last_used_at AS "lastUsedAt"
  FROM api_key`

const appsSql = 'SELECT DISTINCT app FROM api_key WHERE app <> $1 ORDER BY app'

const insertSql = `
  INSERT INTO api_key (id, app, name, kind, hash, prefix, origins, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, now()) ON CONFLICT (hash) DO NOTHING`

// LEAST leaves NULL out: the first end of a key stands, unless it lies ahead. The column has whole milliseconds, and now()
// would be rounded up half of the time: for that moment the key would still pass.
const revokeSql = `
  UPDATE api_key SET revoked_at = LEAST(revoked_at, date_trunc('milliseconds', now()))
  WHERE id = $1 RETURNING id`

// One statement, so that a key never ends without its successor, and of two that rotate it one makes one.
const rotateSql = `
  WITH old AS (
    UPDATE api_key SET revoked_at = now() + $2 * interval '1 millisecond'
    WHERE id = $1 AND revoked_at IS NULL
    RETURNING app, name, kind, origins
  )
  INSERT INTO api_key (id, app, name, kind, origins, hash, prefix, created_at)
  SELECT $3, app, name, kind, origins, $4, $5, now() FROM old
  RETURNING id`
