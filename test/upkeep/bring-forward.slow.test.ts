import { Queue } from 'bullmq'
import { expect, test } from 'vitest'
import { queueName, queuePrefix } from '../../src/notice/job.ts'
import { createProducer } from '../../src/notice/producer.ts'
import { freshPhone, noticeBody, untilFinal } from '../delivery/notices.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

test('notices that a former pace parked an hour ahead, with delayed jobs → a worker with a higher pace sends all within seconds', async () => {
  const policyFile = {
    policies: noLimits,
    providers: { phone: { kind: 'sandbox', pace: '500 per 1s' } },
    routes: { sms: [{ use: ['phone'] }] },
  }
  const api = await startPostern({ policyFile, roles: { api: true, worker: false } })
  // A busy machine answers some of so many 503, which changes nothing.
  const send = () =>
    eventually(async () => {
      const { status, body } = await api.post('/v1/notices', noticeBody('sms', freshPhone()))
      return status === 202 && String(body.id)
    })
  const ids = await Promise.all(Array.from({ length: 600 }, send))
  // The state after a deferral: a due time and a delayed job for each.
  const producer = createProducer(await api.redis.connect('producer'), api.redis.prefix)
  const of = { channel: 'sms', kind: 'notice' } as const
  const queue = new Queue(queueName(of), {
    connection: await api.redis.connect('producer'),
    prefix: queuePrefix(api.redis.prefix, of),
    skipVersionCheck: true,
  })
  releaseLater(() => Promise.all([producer.close(), queue.close()]))
  await queue.drain()
  await api.database.pool.query(`UPDATE notice SET due_at = now() + interval '1 hour'`)
  await Promise.all(
    ids.map((id) => producer.add({ id, channel: 'sms', kind: 'notice', retryInMs: 3_600_000 })),
  )
  expect(await queue.getDelayedCount()).toBe(600)
  await startPostern({ policyFile, on: api, roles: { api: false, worker: true } })
  await untilFinal(api, ids)
  const { rows } = await api.database.pool.query('SELECT DISTINCT state FROM notice')
  expect(rows).toEqual([{ state: 'sent' }])
  expect(await queue.getDelayedCount()).toBe(0)
}, 90_000)
