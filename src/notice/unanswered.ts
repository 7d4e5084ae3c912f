/**
 * Rows whose request never heard its answer. Either the request's process gives the row up, or a repeat
 * of the request takes it for its own: one row must never meet both.
 */
import type { Database } from '../storage/database.ts'

/** A notice that an earlier request made. */
export interface AdoptedNotice {
  /** Not sent yet. */
  isOpen: boolean
  createdAt: Date
  expiresAt: Date
}

export function createUnanswered(database: Database) {
  return {
    /** Closes notices whose 202 was never given, unless a worker or a repeat has claimed them. */
    async abandon(ids: readonly string[]): Promise<void> {
      await database.query('notice-abandon', abandonSql, [ids])
    },

    /**
     * What a request whose answer was lost has made, if it was sent or will be: a row that waits is
     * promised now, and no longer closed by `abandon`. Null when it is not there, or ended unsent.
     */
    async adopt(app: string, id: string): Promise<AdoptedNotice | null> {
      await database.query('notice-adopt', adoptSql, [app, id])
      const [row] = await database.query<AdoptedNotice>('notice-adopted', adoptedSql, [app, id])
      return row ?? null
    },
  }
}

const abandonSql = `
  UPDATE notice SET state = 'failed', error = 'abandoned', due_at = NULL, sealed_params = NULL, finished_at = now()
  WHERE id = ANY($1::uuid[]) AND state = 'pending' AND claims = 0`

// Two statements: the second sees what the first waited for.
const adoptSql = `
  UPDATE notice SET claims = claims + 1 WHERE app = $1 AND id = $2 AND state = 'pending'`

const adoptedSql = `
  SELECT state IN ('pending', 'sending') AS "isOpen", created_at AS "createdAt", expires_at AS "expiresAt"
  FROM notice
  WHERE app = $1 AND id = $2 AND (state IN ('pending', 'sending', 'sent', 'delivered')
                                  OR sent_at IS NOT NULL OR error = 'outcome_unknown')`
