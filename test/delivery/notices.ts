import { randomInt } from 'node:crypto'
import type { Postern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'

const digits = (count: number) => String(randomInt(10 ** count)).padStart(count, '0')

/** Recipients that no other test uses. */
export const freshPhone = (prefix = '+86138') => `${prefix}${digits(8)}`
export const freshEmail = () => `${digits(12)}@example.test`

export const noticeBody = (channel: 'sms' | 'email', to: string) => ({
  channel,
  to,
  template: 'welcome',
  params: { name: 'Ada' },
})

/** The row of a notice in PostgreSQL. */
// biome-ignore lint/suspicious/noExplicitAny: rows of a table whose shape the store's tests hold
export async function rowOf(postern: Pick<Postern, 'database'>, id: string): Promise<any> {
  const { rows } = await postern.database.pool.query('SELECT * FROM notice WHERE id = $1', [id])
  return rows[0]
}

/** Until none of them is open. */
export function untilFinal(
  postern: Pick<Postern, 'database'>,
  ids: readonly string[],
  withinMs = 30_000,
): Promise<unknown> {
  return eventually(
    async () => {
      const { rows } = await postern.database.pool.query(
        'SELECT id, state, attempts FROM notice WHERE id = ANY($1::uuid[]) AND due_at IS NOT NULL',
        [ids],
      )
      if (rows.length > 0) throw new Error(`open: ${JSON.stringify(rows.slice(0, 3))}`)
      return true
    },
    { withinMs, everyMs: 50 },
  )
}
