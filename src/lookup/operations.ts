/** What support did about a recipient, by whose key and why: written before it is done. */
import type { Database } from '../db/database.ts'

export const resettable = ['limits', 'lock', 'code'] as const
export type Resettable = (typeof resettable)[number]

export interface Operation {
  at: Date
  /** The id of the API key. */
  keyId: string
  what: Resettable[]
  reason: string
}

export type Operations = ReturnType<typeof createOperations>

const maxShown = 20

/** Throws Unavailable when PostgreSQL is out of reach. */
export function createOperations(database: Database) {
  return {
    async record(
      app: string,
      recipientHash: Buffer,
      operation: Omit<Operation, 'at'>,
    ): Promise<void> {
      const { keyId, what, reason } = operation
      await database.query('operation-record', recordSql, [app, recipientHash, keyId, what, reason])
    },

    /** The latest, newest first. */
    find(app: string, recipientHashes: readonly Buffer[]): Promise<Operation[]> {
      return database.query('operation-find', findSql, [app, recipientHashes, maxShown])
    },
  }
}

const recordSql = `
  INSERT INTO operation (app, recipient_hash, key_id, what, reason) VALUES ($1, $2, $3, $4, $5)`

const findSql = `
  SELECT at, key_id AS "keyId", what, reason FROM operation
  WHERE app = $1 AND recipient_hash = ANY($2) ORDER BY at DESC LIMIT $3`
