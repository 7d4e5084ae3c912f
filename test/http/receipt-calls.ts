import { expect } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import { insertNotices } from '../tools/notices.ts'
import type { Postern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'

/** The secret with which `carrier`, a webhook provider, signs its receipts. */
export const secret = 'a secret both sides know'

export interface Receipt {
  id?: string
  noticeId?: string
  outcome: 'delivered' | 'failed' | 'bounced' | 'complained' | 'opted_out'
}

export function postReceipts(
  postern: Postern,
  body: Receipt[] | string,
  by = secret,
  to = 'carrier',
) {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const headers = { ...signWebhook(by, newId(), Date.now(), text) }
  return postern.post(`/v1/receipts/${to}`, text, { key: null, headers })
}

/** Rows as a worker left them: claimed, or sent by `carrier`. */
export async function insertSends(
  postern: Postern,
  ids: readonly string[],
  state: 'sending' | 'sent',
): Promise<void> {
  const isSent = state === 'sent'
  const rows = ids.map((id) => ({
    ...{ id, recipient: '+8613800138000', state, claims: 1 },
    due_at: isSent ? null : new Date(Date.now() + 3_600_000),
    provider: isSent ? 'carrier' : null,
    provider_message_id: isSent ? `m-${id}` : null,
  }))
  await insertNotices(postern.database.pool, rows)
}

export async function statesOf(
  postern: Postern,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const { rows } = await postern.database.pool.query(
    'SELECT id, state FROM notice WHERE id = ANY($1::uuid[])',
    [ids],
  )
  return new Map(rows.map(({ id, state }) => [id, state]))
}

/**
 * Eight receipts for each notice, shuffled, doubled, some too early and some forged. Runs twice, and fails unless
 * every order ends in the same table.
 */
export async function shuffleReceipts(postern: Postern, notices: number): Promise<void> {
  const finals: string[][] = []
  for (let shuffle = 0; shuffle < 2; shuffle++) {
    const ids = Array.from({ length: notices }, () => newId())
    const early = ids.filter((_, index) => index % 5 === 0)
    await insertSends(
      postern,
      ids.filter((_, index) => index % 5 !== 0),
      'sent',
    )
    await insertSends(postern, early, 'sending')
    const outcomeOf = (index: number) => (index % 3 === 0 ? 'failed' : 'delivered')
    // Six of every eight are genuine (by either id, or both), and two are contradictions.
    const calls = ids.flatMap((id, index) => {
      const outcome = outcomeOf(index)
      const genuine: Receipt[] = [
        { id: `m-${id}`, outcome },
        { noticeId: id, outcome },
        { id: `m-${id}`, noticeId: id, outcome },
      ]
      const opposite = outcome === 'failed' ? 'delivered' : 'failed'
      const forged: Receipt = { noticeId: id, outcome: opposite }
      return [...genuine, ...genuine, forged, forged].map((receipt) => ({
        receipt,
        isForged: receipt === forged,
      }))
    })
    expect(calls).toHaveLength(8 * notices)
    for (let at = calls.length - 1; at > 0; at--) {
      const other = Math.floor(Math.random() * (at + 1))
      ;[calls[at], calls[other]] = [
        calls[other] as (typeof calls)[0],
        calls[at] as (typeof calls)[0],
      ]
    }
    // Vendors send several at a time. Forged receipts go separately.
    const batches: { receipts: Receipt[]; isForged: boolean }[] = []
    for (const isForged of [false, true]) {
      const some = calls.filter((call) => call.isForged === isForged).map(({ receipt }) => receipt)
      for (let at = 0; at < some.length; at += 10) {
        batches.push({ receipts: some.slice(at, at + 10), isForged })
      }
    }
    batches.sort(() => Math.random() - 0.5)
    const halfway = Math.floor(batches.length / 2)
    const post = async (part: typeof batches) => {
      const left = [...part]
      const loop = async () => {
        for (let batch = left.pop(); batch; batch = left.pop()) {
          const reply = await postReceipts(
            postern,
            batch.receipts,
            batch.isForged ? 'a forged secret, as long' : secret,
          )
          expect(reply.status).toBe(batch.isForged ? 403 : 204)
        }
      }
      await Promise.all(Array.from({ length: 16 }, loop))
    }
    await post(batches.slice(0, halfway))
    // Only now the workers record the messages that they had sent.
    await postern.database.pool.query(
      `UPDATE notice SET state = 'sent', due_at = NULL, provider = 'carrier', provider_message_id = 'm-' || id
       WHERE id = ANY($1::uuid[])`,
      [early],
    )
    await post(batches.slice(halfway))
    const final = await eventually(
      async () => {
        const states = await statesOf(postern, ids)
        return ![...states.values()].includes('sent') && ids.map((id) => states.get(id) as string)
      },
      { everyMs: 200 },
    )
    expect(final).toEqual(ids.map((_, index) => outcomeOf(index)))
    finals.push(final)
  }
  expect(finals[0]).toEqual(finals[1])
}
