/** Operations of support on a recipient, with key and reason. Each is recorded before it is done. */
import type { Database } from '../storage/database.ts'

export const resettable = ['limits', 'lock', 'code', 'lane', 'suppression'] as const
export type Resettable = (typeof resettable)[number]

/** `reveal`: an operator saw the full recipient. */
export const operated = [...resettable, 'reveal'] as const
export type Operated = (typeof operated)[number]

export interface Operation {
  at: Date
  /** The id of the API key. */
  keyId: string
  /** Null if the row of the key was deleted. */
  keyName: string | null
  what: Operated[]
  reason: string
}

/** An operation on any recipient, with its place in the list. */
export interface ListedOperation extends Operation {
  id: string
  app: string
}

export type Operations = ReturnType<typeof createOperations>

const maxShown = 20

/** Throws Unavailable if PostgreSQL does not answer. */
export function createOperations(database: Database) {
  return {
    async record(
      app: string,
      recipientHash: Buffer,
      operation: Omit<Operation, 'at' | 'keyName'>,
    ): Promise<void> {
      const { keyId, what, reason } = operation
      await database.query('operation-record', recordSql, [app, recipientHash, keyId, what, reason])
    },

    /** The latest operations, newest first. */
    find(app: string, recipientHashes: readonly Buffer[]): Promise<Operation[]> {
      return database.query('operation-find', findSql, [app, recipientHashes, maxShown])
    },

    /** Operations on all recipients, newest first. `after` is the last operation of the previous page. */
    list(
      apps: readonly string[] | undefined,
      limit: number,
      after?: { at: Date; id: string },
    ): Promise<ListedOperation[]> {
      const values = [apps ?? null, after?.at ?? null, after?.id ?? null, limit]
      return database.query('operation-list', listSql, values)
    },
  }
}

const recordSql = `
  INSERT INTO operation (app, recipient_hash, key_id, what, reason) VALUES ($1, $2, $3, $4, $5)`

const columns = `at, key_id AS "keyId", api_key.name AS "keyName", what, reason`

const findSql = `
  SELECT ${columns} FROM operation LEFT JOIN api_key ON api_key.id = key_id
  WHERE operation.app = $1 AND recipient_hash = ANY($2) ORDER BY at DESC LIMIT $3`

const listSql = `
  SELECT operation.id, operation.app, ${columns}
  FROM operation LEFT JOIN api_key ON api_key.id = key_id
  WHERE ($1::text[] IS NULL OR operation.app = ANY($1))
    AND ($2::timestamptz IS NULL OR (at, operation.id) < ($2, $3::uuid))
  ORDER BY at DESC, operation.id DESC LIMIT $4`
