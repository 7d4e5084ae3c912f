/** Notices: as a send makes them, and as rows that look as if they had been sent long ago. */
import { randomBytes } from 'node:crypto'
import type { Pool } from 'pg'
import { newId } from '../../src/base/ids.ts'
import type { NewNotice } from '../../src/notice/insert.ts'

/** A code by SMS, or the notice that `facts` describe. */
export const newNotice = (facts: Partial<NewNotice> = {}): NewNotice => ({
  ...{ id: newId(), app: 'default', kind: 'captcha', channel: 'sms', recipient: '+8613800138000' },
  ...{ recipientHash: randomBytes(15), scene: 'login', template: 'captcha', locale: 'en' },
  ...{ sealedParams: Buffer.from('sealed'), ttlMs: 300_000 },
  ...facts,
})

/** The same for the template `welcome`, which has no scene. */
export const newWelcome = (facts: Partial<NewNotice> = {}): NewNotice =>
  newNotice({ kind: 'notice', template: 'welcome', scene: null, ...facts })

/** Columns of a row by their names, as JSON has them. */
export type NoticeRow = Readonly<Record<string, unknown>>

/**
 * Inserts rows in any state without a worker, and returns their ids. All rows have the columns of the first. By default each
 * is a notice by SMS that was made now, for a day.
 */
export async function insertNotices(
  pool: Pick<Pool, 'query'>,
  rows: readonly NoticeRow[],
): Promise<string[]> {
  const [created_at, expires_at] = [new Date(), new Date(Date.now() + 86_400_000)]
  const whole: NoticeRow[] = rows.map((row) => ({
    ...{ id: newId(), app: 'default', kind: 'notice', channel: 'sms', recipient_hash: '\\x00' },
    ...{ template: 'welcome', locale: 'en', created_at, expires_at },
    ...row,
  }))
  const columns = Object.keys(whole[0] ?? {}).join(', ')
  await pool.query(
    `INSERT INTO notice (${columns}) SELECT ${columns} FROM jsonb_populate_recordset(NULL::notice, $1)`,
    [JSON.stringify(whole)],
  )
  return whole.map(({ id }) => id as string)
}
