/** Rows whose request was never answered. The first request closes the row, or a repeat adopts it, never both. */
import type { Database } from '../storage/database.ts'
import { undoWays } from './verifications.ts'

export interface AdoptedNotice {
  /** The notice is not sent yet. */
  isOpen: boolean
  createdAt: Date
  expiresAt: Date
}

export function createUnanswered(database: Database) {
  return {
    /** Closes notices without a 202, unless a worker has claimed or a repeat has adopted them. */
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

/**
 * The message of the notice `n` surely did not and will not reach the person: the notice ended unsent, or its time ended
 * while it waited. No claim begins after that time, and an attempt of unknown outcome may have reached the person.
 */
export const surelyUnsent = `(n.state IN ('failed', 'expired') AND n.sent_at IS NULL
                              AND n.error IS DISTINCT FROM 'outcome_unknown'
                              OR n.state = 'pending' AND n.expires_at <= now()
                              AND NOT n.attempts @> '[{"outcome": "unknown"}]')`

const abandonSql = `
  WITH moved AS (
  UPDATE notice SET state = 'failed', error = 'abandoned', due_at = NULL, sealed_params = NULL, finished_at = now()
  WHERE id = ANY($1::uuid[]) AND state = 'pending' AND claims = 0 AND NOT is_adopted
  RETURNING notice.*)${undoWays}
  SELECT id FROM moved`

// These are two statements, because the second must see the row as it is after the first has waited for its lock.
const adoptSql = `
  UPDATE notice SET is_adopted = true WHERE app = $1 AND id = $2 AND state = 'pending'`

const adoptedSql = `
  SELECT n.state IN ('pending', 'sending') AS "isOpen", n.created_at AS "createdAt", n.expires_at AS "expiresAt"
  FROM notice n WHERE n.app = $1 AND n.id = $2 AND NOT ${surelyUnsent}`
