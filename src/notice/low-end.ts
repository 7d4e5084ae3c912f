/**
 * The earliest due time of the open notices of each kind, from which searches in the index of due times begin.
 *
 * Each claim and each end of a notice leaves a dead entry in that index. Vacuum removes them, but not while an old
 * transaction is open somewhere in the database. After a million notices a search from the beginning would read only dead
 * entries until its time limit. So no search begins below the earliest open notice.
 *
 * That notice is searched from the beginning too, as long as this is quick. If not, the search gets its own connection and
 * a hundredth of the time. In between, a search begins shortly before the earliest notice that is known. It misses a row
 * whose commit took longer than that; the next search from the beginning finds it.
 */
import { orLate } from '../base/deadline.ts'
import { Unavailable } from '../base/unavailable.ts'
import type { Database } from '../storage/database.ts'
import type { NoticeKind } from './states.ts'

/** Due times, as PostgreSQL's texts. */
export type LowEnd = Readonly<Record<NoticeKind, string>>

/** A statement that makes a notice due may commit this long after its due time. */
const lateCommitDurationMs = 15_000
const ownTimeoutMs = 60_000
/** A caller waits this long for the first search. */
const answerTimeoutMs = 1_000

/** A search that takes longer than `slowDurationMs` is followed by a rest of `restFactor` times as long. */
export function createLowEnd(database: Database, slowDurationMs = 200, restFactor = 100) {
  let known: LowEnd | undefined
  let durationMs = 0
  let againAtMs = 0
  let searching: Promise<void> | undefined

  /** Searches from the beginning on a connection without the time limit of the pool. */
  function searchSlowly(): Promise<void> {
    searching ??= timed(() =>
      database.onOwnConnection({ statementTimeoutMs: ownTimeoutMs }, async (client) => {
        const { rows } = await client.query<LowEnd>(lowEndSql, [fromBeginning, 0])
        return rows[0]
      }),
    )
      .then(
        (found) => {
          known = found
        },
        (error) => {
          throw new Unavailable('postgresql', error, tooManyDead)
        },
      )
      .finally(() => {
        searching = undefined
      })
    return searching
  }

  async function timed<Result>(search: () => Promise<Result>): Promise<Result> {
    const startedAtMs = performance.now()
    try {
      return await search()
    } finally {
      durationMs = performance.now() - startedAtMs
      againAtMs = durationMs > slowDurationMs ? performance.now() + durationMs * restFactor : 0
    }
  }

  async function search(from: LowEnd, marginDurationMs: number): Promise<LowEnd> {
    const rows = await database.query<LowEnd>('notice-low-end', lowEndSql, [from, marginDurationMs])
    return rows[0] as LowEnd
  }

  /** Throws Unavailable, also while the first search takes long. */
  return async function findLowEnd(): Promise<LowEnd> {
    const isDue = performance.now() >= againAtMs
    if (isDue && durationMs <= slowDurationMs) {
      try {
        known = await timed(() => search(fromBeginning, 0))
        return known
      } catch (error) {
        if (!isTimeOut(error)) throw error
      }
    } else if (known && isDue) void searchSlowly().catch(() => {})
    if (!known) {
      await orLate(searchSlowly(), answerTimeoutMs, () => {
        throw new Unavailable('postgresql', undefined, tooManyDead)
      })
    }
    known = await search(known ?? fromBeginning, lateCommitDurationMs)
    return known
  }
}

const fromBeginning: LowEnd = { captcha: '-infinity', notice: '-infinity' }

const tooManyDead = 'open notices are searched among many dead entries; end old transactions'

const isTimeOut = (error: unknown) =>
  error instanceof Unavailable && (error.cause as { code?: string } | undefined)?.code === '57014'

// No row is read beyond the present: claims that have ended leave their dead entries there.
const earliestOf = (kind: keyof LowEnd) => `
  coalesce((SELECT due_at FROM notice
    WHERE kind = '${kind}' AND due_at >= ($1::jsonb ->> '${kind}')::timestamptz - $2 * interval '1 millisecond'
      AND due_at < now()
    ORDER BY due_at LIMIT 1), now())::text AS ${kind}`

const lowEndSql = `SELECT ${earliestOf('captcha')}, ${earliestOf('notice')}`
