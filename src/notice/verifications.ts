/**
 * Verifications: one code, several ways to the person. Each way is a notice. docs/decisions/0018 has the states, and what
 * each crash leaves.
 *
 * `notices` has an entry for each way that began or was left out, so its length is the next way. A way begins in the statement
 * that inserts its notice, and only if the length is still the same. So no way begins twice.
 */
import type { CodeId, NoticeId } from '../base/ids.ts'
import type { Database } from '../storage/database.ts'

/** `gone`: its code was replaced, or lost, or its time ended. */
export type VerificationEnd = 'passed' | 'tries' | 'canceled' | 'gone'

export interface NewVerification {
  id: CodeId
  app: string
  scene: string
  workflow: string
  sealed: Buffer
  keyId: string
  isPage: boolean
  ways: number
  ttlMs: number
}

export interface Verification extends Omit<NewVerification, 'ttlMs'> {
  notices: readonly (NoticeId | null)[]
  ended: VerificationEnd | null
}

/** A verification whose next way a worker begins. */
export interface DueVerification extends Verification {
  /** The id for the notice. It stays the same when another worker has to begin the way again. */
  nextId: NoticeId
}

/** The way that a new notice begins. */
export interface WayBegun {
  verificationId: CodeId
  /** Its place among the ways, from 0. */
  way: number
  /** The length of `notices` when the way was chosen. */
  seen: number
}

export function createVerifications(database: Database) {
  return {
    async addVerification(row: NewVerification): Promise<void> {
      const { id, app, scene, workflow, sealed, keyId, isPage, ways, ttlMs } = row
      const values = [id, app, scene, workflow, sealed, keyId, isPage, ways, ttlMs]
      await database.query('verification-add', addSql, values)
    },

    async findVerification(app: string, id: string): Promise<Verification | undefined> {
      const [row] = await database.query<Verification>('verification-find', findSql, [app, id])
      return row
    },

    async findVerificationOf(app: string, id: NoticeId): Promise<Verification | undefined> {
      const [row] = await database.query<Verification>('verification-of', ofNoticeSql, [app, id])
      return row
    },

    /** Leases due verifications for `leaseTtlMs`, one for each of the ids. Two workers never get the same. */
    takeDueWays(ids: readonly NoticeId[], leaseTtlMs: number): Promise<DueVerification[]> {
      return database.query<DueVerification>('verification-take', takeSql, [ids, leaseTtlMs])
    },

    /** Begins a way without a notice: a test recipient's, or with `null` all ways that are left. False if it was begun. */
    async passWay({ verificationId, way, seen }: WayBegun, id: NoticeId | null): Promise<boolean> {
      const values = [verificationId, way, seen, id]
      return (await database.query('verification-pass', passSql, values)).length > 0
    },

    /** The first end is kept. No further way begins, except after `tries`. */
    async endVerification(id: CodeId, end: VerificationEnd): Promise<void> {
      await database.query('verification-end', endSql, [id, end])
    },
  }
}

const columns = `v.id, v.app, v.scene, v.workflow, v.sealed, v.key_id AS "keyId", v.is_page AS "isPage", v.ways,
  v.notices, v.ended`

const addSql = `
  INSERT INTO verification (id, app, scene, workflow, sealed, key_id, is_page, ways, ends_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now() + $9 * interval '1 millisecond')
  ON CONFLICT (id) DO NOTHING`

const findSql = `SELECT ${columns} FROM verification v WHERE v.app = $1 AND v.id = $2`

const ofNoticeSql = `
  SELECT ${columns} FROM verification v JOIN notice n ON n.verification_id = v.id
  WHERE n.app = $1 AND n.id = $2`

const takeSql = `
  WITH due AS (
    SELECT id FROM verification WHERE due_at <= now()::timestamptz(3)
    ORDER BY due_at LIMIT cardinality($1::uuid[]) FOR UPDATE SKIP LOCKED
  ), given AS (
    SELECT id, ($1::uuid[])[row_number() OVER ()] AS next_id FROM due
  )
  UPDATE verification v
  SET due_at = now() + $2 * interval '1 millisecond', next_id = coalesce(v.next_id, given.next_id)
  FROM given WHERE v.id = given.id
  RETURNING ${columns}, v.next_id AS "nextId"`

/** Fills the places of ways that were left out. */
const leftOut = (way: string) =>
  `v.notices || array_fill(NULL::uuid, ARRAY[${way} - cardinality(v.notices)])`

const passSql = `
  UPDATE verification v SET notices = ${leftOut('$2::int')} || ARRAY[$4::uuid], due_at = NULL, next_id = NULL
  WHERE v.id = $1 AND cardinality(v.notices) = $3
  RETURNING v.id`

// After the tries of one lane, ways of the other lane may begin.
const endSql = `
  UPDATE verification
  SET ended = CASE WHEN ended IS NULL OR ended = 'tries' AND $2 = 'passed' THEN $2 ELSE ended END,
      due_at = CASE WHEN $2 = 'tries' THEN due_at END
  WHERE id = $1`

const mayGoOn = `(v.ended IS NULL OR v.ended = 'tries')`

/**
 * Part of the statement that inserts the notices of `given`. For each verification it lets at most one notice begin its
 * way.
 */
export const beginWays = `, way AS (
    UPDATE verification v
    SET notices = ${leftOut('given.way')} || given.id, due_at = NULL, next_id = NULL,
        ends_at = now() + given.ttl_ms * interval '1 millisecond'
    FROM given
    WHERE v.id = given.verification_id AND cardinality(v.notices) = given.seen AND ${mayGoOn} AND given.because IS NULL
    RETURNING given.id AS notice_id
  )`

/** The notice of the latest way. */
const latest = 'v.notices[cardinality(v.notices)]'

/**
 * For a notice `first`, the notice `n` that decides whether its message was sent: the notice itself, or the latest way of its
 * verification. There is none while another way is due.
 */
export const latestWay = `notice first LEFT JOIN verification v ON v.id = first.verification_id
  JOIN notice n ON n.id = coalesce(${latest}, first.id) AND v.due_at IS NULL`

/**
 * Part of a statement with `moved AS (UPDATE notice … RETURNING notice.*)`. If the latest way has ended without success, the
 * next one is due. A notice whose code had ended means that the verification has ended.
 */
export const makeNextWayDue = `, next_way AS (
    UPDATE verification v SET due_at = now()
    FROM moved
    WHERE v.id = moved.verification_id AND ${latest} = moved.id AND cardinality(v.notices) < v.ways
      AND moved.state IN ('failed', 'expired') AND moved.error IS DISTINCT FROM 'code_gone' AND ${mayGoOn}
  )`

/**
 * Part of the statement that closes notices whose request was answered with an error. Their way has not begun. It is due again
 * if a failure had begun it.
 */
export const undoWays = `, undone AS (
    UPDATE verification v
    SET notices = v.notices[1:was.way],
        due_at = CASE WHEN EXISTS (SELECT FROM notice n WHERE n.id = v.notices[was.way] AND n.state IN ('failed', 'expired'))
                      THEN now() END
    FROM moved, LATERAL (
      SELECT coalesce(max(place), 0) AS way FROM verification u, unnest(u.notices) WITH ORDINALITY AS begun (id, place)
      WHERE u.id = moved.verification_id AND begun.id IS NOT NULL AND begun.id <> moved.id) AS was
    WHERE v.id = moved.verification_id AND ${latest} = moved.id
  )`
