/** Rows whose request was never answered. The first request closes the row, or a repeat adopts it, never both. */
import type { Database } from '../storage/database.ts'

export interface AdoptedNotice {
  /** The notice is not sent yet. */
  isOpen: boolean
  createdAt: Date
  expiresAt: Date
}

export function createUnanswered(database: Database) {
  return {
    /** Closes notices without a 202, unless a worker or a repeat has claimed them. */
    async abandon(ids: readonly string[]): Promise<void> {
      await database.query('notice-abandon', abandonSql, [ids])
    },

    /**
     * Adopts the notice of a request whose answer was lost, if that notice was sent or will be sent. A waiting row is
     * then promised, and `abandon` no longer closes it. Null if the row is missing or ended unsent.
     */
    async adopt(app: string, id: string): Promise<AdoptedNotice | null> {
      await database.query('notice-adopt', adoptSql, [app, id])
      const [row] = await database.query<AdoptedNotice>('notice-adopted', adoptedSql, [app, id])
      return row ?? null
    },
  }
}

/** The notice `n` ended, and its message surely did not reach the person. */
export const endedUnsent = `(n.state IN ('failed', 'expired') AND n.sent_at IS NULL
                             AND n.error IS DISTINCT FROM 'outcome_unknown')`

const abandonSql = `
  UPDATE notice SET state = 'failed', error = 'abandoned', due_at = NULL, sealed_params = NULL, finished_at = now()
  WHERE id = ANY($1::uuid[]) AND state = 'pending' AND claims = 0`

// These are two statements, because the second must see the row as it is after the first has waited for its lock.
const adoptSql = `
  UPDATE notice SET claims = claims + 1 WHERE app = $1 AND id = $2 AND state = 'pending'`

const adoptedSql = `
  SELECT n.state IN ('pending', 'sending') AS "isOpen", n.created_at AS "createdAt", n.expires_at AS "expiresAt"
  FROM notice n WHERE n.app = $1 AND n.id = $2 AND NOT ${endedUnsent}`
