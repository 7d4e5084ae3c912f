/** Searches for notices, and what bounds them. */
import { expect, test } from 'vitest'
import { idFloor, newId } from '../../src/base/ids.ts'
import { Overloaded } from '../../src/base/unavailable.ts'
import { createFinder } from '../../src/notice/find.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { newNotice } from '../tools/notices.ts'
import { eventually } from '../tools/wait.ts'

const { url, pool } = await testDatabase()
const database = databaseAt(url, 4)
const store = createNoticeStore(database, { claimTtlMs: 10_000 })

const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Ids in their order: two of one millisecond have none. */
const newIds = (count: number) => Array.from({ length: count }, newId).sort()

async function insert(id: string, app: string, scene: string): Promise<void> {
  await store.insert(newNotice({ id, app, scene }))
}

test('a page without a recipient reads a limited number of notices, and the next page continues there', async () => {
  const ids = newIds(12)
  for (const [n, id] of ids.entries()) {
    if (n % 6 === 0) await insert(id, 'shop', 'rare')
    else await insert(id, n % 2 ? 'shop' : 'bank', 'common')
  }
  const pages: string[][] = []
  let before: string | undefined = lastId
  while (before) {
    const ofApp = { apps: ['shop'], scenes: ['rare'], channel: 'sms', hasPassed: false }
    const range = { from: idFloor(0), before, limit: 5, maxLookedAt: 4 }
    const { items, next } = await store.browse({ ...ofApp, ...range })
    pages.push(items.map(({ id }) => id))
    before = next
  }
  expect(pages).toEqual([[], [ids[6]], [ids[0]], []])
})

test('a search without a recipient: whole pages, and an end', async () => {
  const ids = newIds(4)
  for (const id of ids) await insert(id, 'paged', 'login')
  const pages: string[][] = []
  let cursorId: string | undefined
  do {
    const filter = { app: 'paged', limit: 2, ...(cursorId ? { cursorId } : {}) }
    const { items, nextId } = await store.search(filter)
    pages.push(items.map(({ id }) => id))
    cursorId = nextId
  } while (cursorId)
  expect(pages).toEqual([
    [ids[3], ids[2]],
    [ids[1], ids[0]],
  ])
})

test('few long reads run at a time, few wait, and the others are refused at once', async () => {
  const finder = createFinder(database)
  const holder = await pool.connect()
  await holder.query('BEGIN; LOCK TABLE notice IN ACCESS EXCLUSIVE MODE')
  let refused = 0
  const reads = Array.from({ length: 12 }, async (_, n) => {
    const filter = { app: 'shop', limit: 1 }
    const read = n % 2 ? finder.countNotices(filter) : finder.search(filter)
    await read.catch((error) => {
      if (error instanceof Overloaded) refused++
    })
  })
  await eventually(() => refused >= 2)
  await holder.query('ROLLBACK')
  holder.release()
  await Promise.all(reads)
  await eventually(async () => (await finder.search({ app: 'shop', limit: 1 })).items.length === 1)
})
