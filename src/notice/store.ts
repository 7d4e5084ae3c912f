/**
 * The Notice table. Only this room knows its SQL, with one file per use.
 *
 * Inserts, claims and outcomes happen with every message, so each statement has many rows. PostgreSQL's clock decides
 * all times (due, expired), because workers' clocks differ.
 */
import { defaultSuppressFor, type SuppressFor } from '../base/suppression.ts'
import type { Database } from '../storage/database.ts'
import { createBrowse } from './browse.ts'
import {
  type ClaimAsked,
  createClaim,
  createExtend,
  createFindOpen,
  createTakeBack,
} from './claim.ts'
import { createEndCode } from './code-end.ts'
import { createConversions, type OnConverted } from './conversions.ts'
import { createFinder } from './find.ts'
import { createHourCounts } from './hour-counts.ts'
import { createInsert, type NewNotice } from './insert.ts'
import type { WantedEvents } from './outbox.ts'
import { createOverdue } from './overdue.ts'
import { createRecord, type NoticeOutcome } from './record.ts'
import { createUnanswered } from './unanswered.ts'
import { createVerifications } from './verifications.ts'

export type NoticeStore = ReturnType<typeof createNoticeStore>

export function createNoticeStore(
  database: Database,
  options: {
    claimTtlMs: number
    wantedEvents?: WantedEvents
    suppressFor?: () => SuppressFor
    /** Called with each code that counts as typed or as unanswered. */
    onConverted?: OnConverted
  },
) {
  const { onConverted = () => {} } = options
  const suppressFor = options.suppressFor ?? (() => defaultSuppressFor)
  const insert = createInsert(database, suppressFor)
  const findOpen = createFindOpen(database, suppressFor)
  const claim = createClaim(database, options.claimTtlMs)
  const record = createRecord(database, options.wantedEvents, onConverted)
  return {
    insert: (notice: NewNotice) => insert(notice),
    insertWay: createInsert(database, suppressFor, true),
    findOpen: (id: string) => findOpen(id),
    claim: (asked: ClaimAsked) => claim(asked),
    extend: createExtend(database),
    takeBack: createTakeBack(database),
    record: (outcome: NoticeOutcome) => record(outcome),
    /** The statements of every message, for a process that accepts it and for one that delivers it. */
    firstStatements: { send: [insert], delivery: [findOpen, claim, record] },
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
