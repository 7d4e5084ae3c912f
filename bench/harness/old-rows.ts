/** Half a year of notices, in the form of sent notices. */
import type { ClientBase } from 'pg'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createPartitions, notices, spansToMake } from '../../src/upkeep/partitions.ts'
import { secret } from './bench.ts'

const dayMs = 86_400_000
const perStatement = 100_000

export const recipientOf = (subject: number) => `+86139${String(subject).padStart(8, '0')}`

export interface OldRows {
  rows: number
  /** Number of recipients. */
  subjects: number
  days: number
  /** Older notices have no recipient. */
  recipientDays: number
}

/** Spreads the rows evenly over the last days, each week in its partition. The table must be empty. */
export async function addOldRows(client: ClientBase, options: OldRows): Promise<void> {
  const { rows, subjects, days, recipientDays } = options
  const nowMs = Date.now()
  const fromMs = nowMs - days * dayMs
  const partitions = createPartitions(notices, client)
  // A worker has made the partitions of the coming weeks. The current week lies partly in one of them.
  for (const name of await partitions.endedBefore(2 ** 47)) await partitions.drop(name)
  for (let atMs = fromMs - 2 * dayMs; atMs < nowMs; atMs += 7 * dayMs) {
    for (const span of spansToMake(notices, atMs)) await partitions.make(span)
  }
  await client.query('CREATE TABLE subject (number int PRIMARY KEY, recipient text, hash bytea)')
  const secrets = createSecrets(secret)
  for (let from = 0; from < subjects; from += perStatement) {
    const recipients = Array.from({ length: Math.min(perStatement, subjects - from) }, (_, index) =>
      recipientOf(from + index),
    )
    const hashes = recipients.map((to) => secrets.recipientHashes('sms', to)[0])
    const values = [from - 1, recipients, hashes]
    await client.query(
      `INSERT INTO subject SELECT $1::int + n, to_, hash FROM unnest($2::text[], $3::bytea[]) WITH ORDINALITY AS s (to_, hash, n)`,
      values,
    )
  }
  const stepMs = (nowMs - fromMs) / rows
  for (let from = 1; from <= rows; from += perStatement) {
    const values = [
      from,
      Math.min(rows, from + perStatement - 1),
      fromMs,
      stepMs,
      recipientDays,
      subjects,
    ]
    await client.query(rowsSql, values)
  }
  await client.query('VACUUM (ANALYZE) notice')
  await client.query('CHECKPOINT')
}

/** Two of three are delivered, one of twenty failed. Message ids are random, as from providers. */
const rowsSql = `
  INSERT INTO notice (id, app, kind, channel, recipient, recipient_hash, scene, template, locale, state, claims, attempts,
                      provider, provider_message_id, error, created_at, expires_at, sent_at, finished_at, code_end)
  SELECT (lpad(to_hex(ms), 12, '0') || '7' || left(random, 3) || '8' || substr(random, 4, 15))::uuid,
         'default', 'captcha', 'sms', CASE WHEN at > now() - $5 * interval '1 day' THEN subject.recipient END, subject.hash,
         'signup', 'captcha', 'en', state, 1,
         jsonb_build_array(jsonb_build_object('provider', 'box', 'outcome', 'accepted', 'durationMs', n % 100,
                                              'at', to_char(at, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))),
         'box', random::uuid::text, CASE state WHEN 'failed' THEN 'not_delivered' END,
         at, at + interval '5 min', at + interval '1 s', at + interval '4 s', CASE WHEN n % 10 < 7 THEN 'passed' END
  FROM (SELECT n, md5(n::text) AS random, ($3::float8 + n * $4::float8)::bigint AS ms,
               CASE WHEN n % 20 = 0 THEN 'failed' WHEN n % 3 = 0 THEN 'sent' ELSE 'delivered' END AS state
        FROM generate_series($1::int, $2::int) AS n) AS made
  CROSS JOIN LATERAL (SELECT to_timestamp(ms / 1000.0) AS at) AS clock
  JOIN subject ON subject.number = (hashint8(made.n)::bigint & 2147483647) % $6::bigint`
