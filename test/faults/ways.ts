/**
 * People with several ways: the first one fails, so the next one begins without a request. Some ask for the last one, and
 * some cancel.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Fleet, farEndSecret, freshPhone, type Reply } from '../tools/fleet.ts'
import { eventually } from '../tools/wait.ts'
import { atRate } from './ledger.ts'

/** Sections of the policy file. Calls go to a far end that refuses them. */
export function sectionsWithWays(farEndUrl: string, refusingUrl: string) {
  const webhook = (url: string) => ({ kind: 'webhook', url, secret: farEndSecret })
  const far = [{ use: ['far'] }]
  return {
    providers: { far: webhook(farEndUrl), refusing: webhook(refusingUrl) },
    routes: { sms: far, voice: [{ use: ['refusing'] }], whatsapp: far },
    workflows: { all: ['voice', 'sms', 'whatsapp'] },
  }
}

/** Begins verifications at a steady rate until `isOver`. Returns the ids of those with a 202. */
export async function beginWaysAtRate(
  fleet: Fleet,
  perSecond: number,
  isOver: (elapsedMs: number) => boolean,
): Promise<string[]> {
  const begun: string[] = []
  const answerOf = (path: string, body: unknown): Promise<Reply | undefined> =>
    fleet.post(path, body).catch(() => undefined)
  await atRate(perSecond, isOver, async (count) => {
    const sent = await answerOf('/v1/captchas', { workflow: 'all', to: freshPhone() })
    if (sent?.status !== 202) return
    begun.push(sent.body.id)
    const later = ['next', 'cancel', undefined][count % 3]
    if (!later) return
    await sleep((count % 20) * 100)
    await answerOf(`/v1/captchas/${sent.body.id}/${later}`, {})
  })
  return begun
}

/** No verification waits for a way or a message, no way began twice, and no failed way is without its next (0018). */
export async function expectWaysAgree(
  fleet: Fleet,
  begun: readonly string[],
  withinMs: number,
): Promise<string> {
  const rowsOf = (wrong: string) =>
    fleet.query(
      `WITH way AS (
         SELECT v.*, n.id AS notice_id, n.channel, n.state, n.id = v.notices[cardinality(v.notices)] AS is_latest
         FROM unnest($1::uuid[]) AS of LEFT JOIN verification v ON v.id = of
         LEFT JOIN notice n ON n.verification_id = v.id AND n.error IS DISTINCT FROM 'abandoned')
       SELECT id, ways, notices, ended, array_agg(channel || ' ' || state) AS sent FROM way
       GROUP BY id, ways, notices, ended, due_at HAVING ${wrong}`,
      [begun],
    )
  await eventually(
    async () =>
      expect(
        await rowsOf(
          `bool_or(id IS NULL) OR due_at IS NOT NULL OR bool_or(state IN ('pending', 'sending'))`,
        ),
        'lost',
      ).toEqual([]),
    { withinMs, everyMs: 500 },
  )
  expect(await rowsOf('count(channel) > count(DISTINCT channel)'), 'a way twice').toEqual([])
  const failed = `bool_or(is_latest AND state IN ('failed', 'expired') AND ended IS NULL AND cardinality(notices) < ways)`
  expect(await rowsOf(failed), 'a failed way without its next').toEqual([])
  const [counts] = await fleet.query<{ text: string }>(
    `SELECT count(DISTINCT verification_id) || ' with ' || count(*) || ' ways' AS text FROM notice
     WHERE verification_id = ANY($1) AND error IS DISTINCT FROM 'abandoned'`,
    [begun],
  )
  return counts?.text ?? ''
}
