/** The plans of a worker's statements, with many partitions. */
import { beforeAll, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { openDatabase } from '../../src/storage/database.ts'
import { createPartitions, notices, spansToMake } from '../../src/upkeep/partitions.ts'
import { testDatabase } from '../tools/database.ts'
import { newNotice } from '../tools/notices.ts'
import { releaseLater } from '../tools/release.ts'

const weekMs = 7 * 86_400_000
const { url, pool } = await testDatabase()
const database = openDatabase(url, { maxConnections: 1, onError: () => {}, plansOnce: true })
releaseLater(() => database.close())
const id = newId()

/** The plan of a statement that the connection of `database` has prepared. */
async function planOf(name: string, ...values: string[]): Promise<string> {
  const given = values.length > 0 ? `(${values.join(', ')})` : ''
  const { rows } = await database.pool.query(`EXPLAIN EXECUTE "${name}" ${given}`)
  return rows.map((row) => row['QUERY PLAN']).join('\n')
}
const ids = `ARRAY['${id}']::uuid[]`
const range = [`'${id}'`, `'${id}'`]

beforeAll(async () => {
  const client = await pool.connect()
  const partitions = createPartitions(notices, client)
  for (let week = 0; week < 12; week++) {
    for (const span of spansToMake(notices, Date.now() + week * weekMs)) await partitions.make(span)
  }
  client.release()
  const store = createNoticeStore(database, { claimTtlMs: 10_000 })
  await store.insert(newNotice({ id }))
  const open = await store.findOpen(id)
  const claim = open && (await store.claim(open))
  const outcome = { id, claims: claim?.claims ?? 0, state: 'sent', attempts: [] } as const
  expect(await store.record(outcome)).toBe(true)
  await store.takeBack({ id, claims: 0 })
  await store.takeOverdue('captcha', 10, 1_000, 1_000)
  await store.oldestOpenSeconds()
  await store.scheduledCount()
  await store.takeParked(10, 1_000, 1_000)
  await store.deferredCount([id], 'now')
})

test('each is planned once for a connection, without its values', async () => {
  const { rows } = await database.pool.query(
    `SELECT name, custom_plans AS "custom" FROM pg_prepared_statements WHERE name LIKE 'notice-%' ORDER BY 1`,
  )
  expect(rows).toEqual(
    [
      'claim',
      'create',
      'deferred',
      'low-end',
      'oldest',
      'open',
      'overdue',
      'parked',
      'record',
      'scheduled',
      'take-back',
    ].map((name) => ({ name: `notice-${name}`, custom: '0' })),
  )
})

test.each([
  ['notice-open', [ids, ...range, 'ARRAY[1, 1, 1]']],
  ['notice-claim', [ids, 'ARRAY[1]', 'NULL', '1000', ...range]],
  ['notice-take-back', [ids, 'ARRAY[1]', 'NULL', ...range]],
  ['notice-deferred', [ids, ...range, 'now()']],
  ['notice-record', [ids, 'ARRAY[1]', ...Array(8).fill('NULL'), ...range]],
])(
  '%s reads only the partition of its ids, by the index, although all are empty',
  async (name, values) => {
    const plan = await planOf(name, ...values)
    expect(plan).toMatch(/Subplans Removed: 1\d/)
    expect(plan).toMatch(/Index Scan using notice_default_pkey/)
    expect(plan).not.toMatch(/Seq Scan on notice/)
  },
)
test.each([
  ['notice-low-end', [`'{"captcha":"-infinity","notice":"-infinity"}'`, '0']],
  ['notice-oldest', [`'-infinity'`, `'-infinity'`]],
  ['notice-scheduled', []],
])('%s reads a limited number of open notices, each of its kind', async (name, values) => {
  const plan = await planOf(name, ...values)
  expect(plan).toMatch(/Limit/)
  expect(plan).toMatch(/Index Cond: \(+kind = '(captcha|notice)'/)
  expect(plan).not.toMatch(/Seq Scan on notice/)
})
test('the search for overdue notices reads no whole partition', async () => {
  const plan = await planOf('notice-overdue', `'captcha'`, '10', '1000', '1000', `'-infinity'`)
  expect(plan).toMatch(/Index Scan using notice_default_kind_due_at_idx/)
  expect(plan).not.toMatch(/Seq Scan on notice|Join/)
  // By a condition on the id, and not all of them.
  expect(plan).toMatch(/Index Scan using notice_default_pkey.*\n +Index Cond: \(\(id = ANY/)
})
test('the search for parked notices reads a limited number of open notices, and changes them by their ids', async () => {
  const plan = await planOf('notice-parked', '10', '1000', '1000', `'-infinity'`)
  expect(plan).toMatch(/Limit/)
  expect(plan).toMatch(/Index Cond: \(+kind = 'notice'/)
  expect(plan).not.toMatch(/Seq Scan on notice|Join/)
  expect(plan).toMatch(/Index Scan using notice_default_pkey.*\n +Index Cond: \(\(id = ANY/)
})
