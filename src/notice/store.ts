/**
 * The Notice table: this room alone knows its SQL, one file for each story a row goes through.
 *
 * Inserts, claims and outcomes run at the speed of traffic and go many rows to a statement. Times that
 * decide anything (is it due, is it over) are PostgreSQL's, because workers' clocks differ.
 */
import type { Database } from '../storage/database.ts'
import { createBrowse } from './browse.ts'
import { createClaim, createFindOpen } from './claim.ts'
import { createFinder } from './find.ts'
import { createInsert } from './insert.ts'
import type { WantedEvents } from './outbox.ts'
import { createOverdue } from './overdue.ts'
import { createRecord } from './record.ts'
import { createUnanswered } from './unanswered.ts'

export type NoticeStore = ReturnType<typeof createNoticeStore>

export function createNoticeStore(
  database: Database,
  options: {
    claimMs: number
    /** Of which moves events are written. */
    wantedEvents?: WantedEvents
  },
) {
  return {
    insert: createInsert(database),
    findOpen: createFindOpen(database),
    claim: createClaim(database, options.claimMs),
    record: createRecord(database, options.wantedEvents),
    ...createOverdue(database),
    ...createUnanswered(database),
    ...createFinder(database),
    ...createBrowse(database),
  }
}
