/**
 * The Notice table. Only this room knows its SQL, with one file per use.
 *
 * Inserts, claims and outcomes happen with every message, so each statement has many rows. PostgreSQL's clock decides
 * all times (due, expired), because workers' clocks differ.
 */
import { defaultSuppressFor, type SuppressFor } from '../base/suppression.ts'
import type { Database } from '../storage/database.ts'
import { createBrowse } from './browse.ts'
import { createClaim, createExtend, createFindOpen, createTakeBack } from './claim.ts'
import { createEndCode } from './code-end.ts'
import { createConversions, type OnConverted } from './conversions.ts'
import { createFinder } from './find.ts'
import { createHourCounts } from './hour-counts.ts'
import { createInsert, createInsertWay } from './insert.ts'
import type { WantedEvents } from './outbox.ts'
import { createOverdue } from './overdue.ts'
import { createRecord } from './record.ts'
import { createUnanswered } from './unanswered.ts'
import { createVerifications } from './verifications.ts'

export type NoticeStore = ReturnType<typeof createNoticeStore>

export function createNoticeStore(
  database: Database,
  options: {
    claimMs: number
    /** The events to write for moves. */
    wantedEvents?: WantedEvents
    /** How long reports about a recipient hold. */
    suppressFor?: () => SuppressFor
    /** Called with each code that counts as typed or as unanswered. */
    onConverted?: OnConverted
  },
) {
  const { onConverted = () => {} } = options
  const suppressFor = options.suppressFor ?? (() => defaultSuppressFor)
  return {
    insert: createInsert(database, suppressFor),
    insertWay: createInsertWay(database, suppressFor),
    findOpen: createFindOpen(database, suppressFor),
    claim: createClaim(database, options.claimMs),
    extend: createExtend(database),
    takeBack: createTakeBack(database),
    record: createRecord(database, options.wantedEvents, onConverted),
    endCode: createEndCode(database, onConverted),
    countUnanswered: createConversions(database, onConverted),
    ...createOverdue(database),
    ...createUnanswered(database),
    ...createFinder(database),
    ...createBrowse(database),
    ...createHourCounts(database),
    ...createVerifications(database),
  }
}
