import { setTimeout as sleep } from 'node:timers/promises'
import { Queue } from 'bullmq'
import type { Channel } from '../../src/base/channel.ts'
import { newId } from '../../src/base/ids.ts'
import { createCodeStore } from '../../src/captcha/code-store.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { queueName, queuePrefix } from '../../src/notice/job.ts'
import { createProducer } from '../../src/notice/producer.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { openDatabase } from '../../src/storage/database.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { type Bench, secret } from './bench.ts'

/** Rows and jobs as the API makes them, behind a gate that opens for each round. */
export function openBacklog(
  { redis: redisServer, postgres, closeLater }: Bench,
  message: { channel: Channel; kind: 'captcha' | 'notice'; template: string; params: object },
  freshRecipient: () => string,
) {
  const { channel, kind, template, params } = message
  const database = openDatabase(postgres.url, { maxConnections: 4, onError: () => {} })
  closeLater(() => database.close())
  const redis = connectRedis(redisServer.url, 'producer', () => {})
  closeLater(() => redis.disconnect())
  const store = createNoticeStore(database, { claimTtlMs: 10_000 })
  const secrets = createSecrets(secret)
  const producer = createProducer(redis, 'postern:')
  closeLater(() => producer.close())
  const codes = createCodeStore(redis, secrets, {
    keyPrefix: 'postern:',
    ttlMs: 600_000,
    triesPerCode: 3,
  })
  const queue = new Queue(queueName({ channel, kind }), {
    connection: redis,
    prefix: queuePrefix('postern:', { channel, kind }),
  })
  closeLater(() => queue.close())

  return {
    open: () => queue.resume(),
    /** Jobs that wait. */
    left: async () => (await queue.count()) + (await queue.getActiveCount()),
    async close() {
      await queue.pause()
      // Waits for the work under way, so that it is not counted in the next round.
      while ((await queue.getActiveCount()) > 0) await sleep(20)
    },
    async fill(count: number) {
      await queue.pause()
      await Promise.all(
        Array.from({ length: count }, async () => {
          const [id, to] = [newId(), freshRecipient()]
          if (kind === 'captcha') {
            const owner = { app: 'default', scene: 'login', channel, to }
            await codes.remember(owner, id, '1234')
          }
          await store.insert({
            id,
            app: 'default',
            kind,
            channel,
            recipient: to,
            recipientHash: secrets.recipientHashes(channel, to)[0] as Buffer,
            scene: kind === 'captcha' ? 'login' : null,
            template,
            locale: 'en',
            sealedParams: secrets.seal(JSON.stringify(params), id),
            ttlMs: 3_600_000,
          })
          await producer.add({ id, channel, kind })
        }),
      )
    },
  }
}
