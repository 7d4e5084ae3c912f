import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { openDatabase } from '../../src/db/database.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { startReconciler } from '../../src/notice/reconcile.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { testDatabase } from '../support/database.ts'
import { releaseLater } from '../support/release.ts'
import { eventually } from '../support/wait.ts'

test('four reconcilers: each overdue notice is queued exactly once, however often they look (I11)', async () => {
  const { url, pool } = await testDatabase()
  const database = openDatabase(url, { maxConnections: 8, onError: () => {} })
  releaseLater(() => database.close())
  const store = createNoticeStore(database, { claimMs: 10_000 })
  const ids = Array.from({ length: 300 }, () => newId())
  await Promise.all(
    ids.map((id) =>
      store.create({
        id,
        app: 'default',
        kind: 'captcha',
        channel: 'sms',
        recipient: '+8613800138000',
        recipientHash: randomBytes(16),
        scene: 'login',
        template: 'captcha',
        locale: 'en',
        sealedParams: Buffer.from('sealed'),
        ttlMs: 300_000,
      }),
    ),
  )
  await pool.query(`UPDATE notice SET due_at = now() - interval '1 minute'`)

  const queued: string[] = []
  const add = async ({ id }: { id: string }) => {
    queued.push(id)
  }
  const metrics = createMetrics({ process: 'worker' })
  const log = createLog({ level: 'silent', process: 'test' })
  const copies = [1, 2, 3, 4].map(() =>
    startReconciler({
      store,
      producer: { add } as never,
      receipts: { sweep: async () => {} },
      metrics,
      log,
    }),
  )
  releaseLater(() => Promise.all(copies.map((copy) => copy.stop())))
  await eventually(() => queued.length >= ids.length, { withinMs: 10_000 })
  await Promise.all(copies.map((copy) => copy.stop()))
  expect([...queued].sort()).toEqual([...ids].sort())
  const { values } = await metrics.reconciled.get()
  expect(values[0]?.value).toBe(300)
})
