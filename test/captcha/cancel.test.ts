import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createCancelCaptcha } from '../../src/captcha/cancel.ts'
import { type CodeOwner, createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const redis = await testRedis()
const options = { keyPrefix: redis.prefix, ttlMs: 300_000, triesPerCode: 3 }

let people = 0

/** A committed code with data for its end, behind a Redis and a row that can be away. */
async function start() {
  const proxy = await startTcpProxy(Number(new URL(redis.url).port))
  const connection = connectRedis(proxy.through(redis.url), 'code', () => {})
  releaseLater(() => connection.disconnect())
  const secrets = createSecrets('s'.repeat(32))
  const codes = closeLater(createCodeStore(connection, secrets, options))
  const owner: CodeOwner = { app: 'web', scene: 'login', channel: 'sms', to: `+86138${++people}` }
  const id = newId()
  await eventually(() => codes.remember(owner, id, '0042', 'the refund'))
  const done = { refunds: [] as unknown[], events: [] as string[] }
  let codeEnd: string | null = null
  let isRowAway = false
  const cancel = createCancelCaptcha({
    findCaptcha: async () => ({ ...owner, codeEnd }),
    codes,
    endCode: async (_, __, end) => {
      if (isRowAway) throw new Error('the row could not be written')
      codeEnd = end
    },
    limits: { refund: (ended) => void done.refunds.push(ended) },
    events: { passed: (_, noticeId) => void done.events.push(noticeId) },
    testRecipients: { isTestRecipient: () => false },
  })
  const once = { refunds: [{ noticeId: id, onPass: 'the refund' }], events: [id] }
  return {
    ...{ proxy, codes, owner, id, done, once },
    cancel: () => cancel('web', id, true),
    rowAway: (isAway: boolean) => (isRowAway = isAway),
  }
}

describe('a cancel as passed: one refund and one event', () => {
  test('the row could not be written → the code is alive, and the repeat ends it', async () => {
    const { cancel, codes, owner, done, once, rowAway } = await start()
    rowAway(true)
    await expect(cancel()).rejects.toThrow('row')
    expect(await codes.look(owner)).toMatchObject({ result: 'live', triesLeft: 3 })
    expect(done).toEqual({ refunds: [], events: [] })
    rowAway(false)
    expect(await cancel()).toEqual({ outcome: 'canceled' })
    expect(await cancel()).toEqual({ outcome: 'canceled' })
    expect(done).toEqual(once)
  })

  test('the answer of Redis is lost, after the code has ended → the repeat', async () => {
    const { proxy, cancel, codes, owner, id, done, once, rowAway } = await start()
    // The row is written already, so the answers of the first two steps are not needed.
    rowAway(false)
    const ended = codes.drop.bind(codes)
    codes.drop = async (...args) => {
      proxy.dropAnswers()
      codes.drop = ended
      return ended(...args)
    }
    await expect(cancel()).rejects.toThrow('redis')
    proxy.cut()
    proxy.forward()
    expect(await eventually(cancel)).toEqual({ outcome: 'canceled' })
    await eventually(() => expect(done).toEqual(once))
    expect(await codes.look(owner, id)).toMatchObject({ result: 'gone' })
    expect(await cancel()).toEqual({ outcome: 'canceled' })
    expect(done).toEqual(once)
  })

  test('the code is not settled yet → it ends, and neither passes nor is sent', async () => {
    const { codes, owner, done } = await start()
    const later = newId()
    expect(await codes.remember(owner, later, '0043', 'another refund')).toBe(true)
    const cancel = createCancelCaptcha({
      findCaptcha: async () => ({ ...owner, codeEnd: null }),
      codes,
      endCode: async () => {},
      limits: { refund: (ended) => void done.refunds.push(ended) },
      events: { passed: () => {} },
      testRecipients: { isTestRecipient: () => false },
    })
    expect(await cancel('web', later, false)).toEqual({ outcome: 'canceled' })
    expect(await codes.settle(owner, later)).toBe('gone')
    expect(await codes.guess(owner, '0043', later)).toMatchObject({ result: 'gone' })
  })
})
