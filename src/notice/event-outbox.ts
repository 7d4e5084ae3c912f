/** The outbox of events. Only this file and notice/outbox.ts know its table. */
import { createBatcher } from '../base/batcher.ts'
import type { EventType } from '../base/event-types.ts'
import type { Database } from '../storage/database.ts'
import { columns } from './columns.ts'

export interface NewEvent {
  /** Made before the first attempt to add the event, so that a repeat adds the same event. */
  id: string
  createdAt: Date
  app: string
  type: EventType
  data: Readonly<Record<string, unknown>>
  /** The sampled span that caused the event. */
  traceParent?: string | null | undefined
}

/** An event that a worker has leased. */
export interface TakenEvent extends NewEvent {
  /** The number of attempts, this one included. */
  tries: number
  /** The event is older than `oldDurationMs`. */
  isOld: boolean
}

export interface EndedLease {
  id: string
  /** The pause before the next attempt. Undefined if the event was accepted or given up. */
  retryInMs?: number
  /** The event keeps the number of tries that it had before this lease. */
  isNoTry?: true
}

/** A waiting event in the form for operators. */
export interface WaitingEvent {
  id: string
  app: string
  type: string
  createdAt: Date
  dueAt: Date
  tries: number
}

export type EventOutbox = ReturnType<typeof createEventOutbox>

export function createEventOutbox(database: Database) {
  return {
    /**
     * Adds events that do not come from a change of a notice. They are committed when the promise resolves. A repeat of
     * an event that is still here changes nothing.
     */
    add: createBatcher<NewEvent, void>({
      maxItems: 200,
      maxConcurrent: 1,
      async run(events) {
        const values = columns(events, [
          ...(['id', 'createdAt', 'app', 'type'] as const),
          ({ data }) => JSON.stringify(data),
          'traceParent',
        ])
        await database.query('event-add', addSql, values)
      },
    }),

    /** Leases up to `limit` due events for `leaseTtlMs`. Two workers never get the same event. */
    take(limit: number, leaseTtlMs: number, oldDurationMs: number): Promise<TakenEvent[]> {
      return database.query<TakenEvent>('event-take', takeSql, [limit, leaseTtlMs, oldDurationMs])
    },

    /** Ends leases: makes events due after their pause, and deletes events without a pause. */
    async settle(events: readonly EndedLease[]): Promise<void> {
      const over = events.filter(({ retryInMs }) => retryInMs === undefined)
      const again = events.filter(({ retryInMs }) => retryInMs !== undefined)
      if (over.length > 0) await database.query('event-remove', removeSql, columns(over, ['id']))
      if (again.length > 0) {
        const values = columns(again, ['id', 'retryInMs', ({ isNoTry }) => isNoTry ?? false])
        await database.query('event-again', againSql, values)
      }
    },

    /** Waiting events, the next due event first. `after` is the last event of the previous page. */
    list(
      apps: readonly string[] | undefined,
      limit: number,
      after?: { at: Date; id: string },
    ): Promise<WaitingEvent[]> {
      const values = [apps ?? null, after?.at ?? null, after?.id ?? null, limit]
      return database.query('event-list', listSql, values)
    },

    /** Age of the oldest event, 0 without events. */
    async oldestSeconds(): Promise<number> {
      const [row] = await database.query<{ seconds: number | null }>('event-oldest', oldestSql, [])
      return row?.seconds ?? 0
    },
  }
}

const addSql = `
  INSERT INTO event (id, created_at, app, type, data, trace_parent)
  SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::jsonb[], $6::text[])
  ON CONFLICT (id) DO NOTHING`

// The column rounds to milliseconds, often up. The cast rounds in the same way, so an event that is due now is taken
// now.
const takeSql = `
  UPDATE event
  SET tries = tries + 1, due_at = now() + $2 * interval '1 millisecond'
  WHERE id IN (
    SELECT id FROM event WHERE due_at <= now()::timestamptz(3) ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)
  RETURNING id, app, type, data, created_at AS "createdAt", tries,
            trace_parent AS "traceParent", created_at < now() - $3 * interval '1 millisecond' AS "isOld"`

const removeSql = 'DELETE FROM event WHERE id = ANY($1::uuid[])'

const againSql = `
  UPDATE event
  SET tries = tries - again.is_no_try::int, due_at = now() + again.pause_ms * interval '1 millisecond'
  FROM unnest($1::uuid[], $2::float8[], $3::boolean[]) AS again (id, pause_ms, is_no_try)
  WHERE event.id = again.id`

const oldestSql = `
  SELECT greatest(0, extract(epoch FROM now() - min(created_at)))::float8 AS seconds FROM event`

const listSql = `
  SELECT id, app, type, created_at AS "createdAt", due_at AS "dueAt", tries FROM event
  WHERE ($1::text[] IS NULL OR app = ANY($1))
    AND ($2::timestamptz IS NULL OR (due_at, id) > ($2, $3::uuid))
  ORDER BY due_at, id LIMIT $4`
