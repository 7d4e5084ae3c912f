import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { freshPhone, noticeBody, rowOf, untilFinal } from './notices.ts'

test('a notice with sendAt whose job is lost with Redis: the reconciler carries it at its time', async () => {
  const postern = await startPostern({ policyFile: { policies: noLimits } })
  const sendAt = new Date(Date.now() + 2_000)
  const { body } = await postern.post('/v1/notices', {
    ...noticeBody('sms', freshPhone()),
    sendAt: sendAt.toISOString(),
  })
  await postern.redis.client.flushdb()
  await untilFinal(postern, [body.id], 60_000)
  const row = await rowOf(postern, body.id)
  expect(row.state).toBe('sent')
  expect(row.sent_at.getTime()).toBeGreaterThanOrEqual(sendAt.getTime() - 50)
})
