import { describe, expect, test } from 'vitest'
import { type Fleet, freshPhone, settle, startFleet } from '../support/fleet.ts'
import type { PosternProcess } from '../support/processes.ts'
import { eventually } from '../support/wait.ts'

const send = (fleet: Fleet, to: string) => fleet.post('/v1/captchas', { channel: 'sms', to })

const admin = (api: PosternProcess | undefined, path: string) =>
  fetch(`${api?.adminUrl}${path}`, { headers: { connection: 'close' } })

/** 40 sends at once to different numbers: all 503, all within the time a caller may be kept waiting. */
async function expectUnavailable(fleet: Fleet): Promise<void> {
  const replies = await Promise.all(Array.from({ length: 40 }, () => send(fleet, freshPhone())))
  for (const { status, body, tookMs } of replies) {
    expect({ status, code: body.code }).toEqual({ status: 503, code: 'unavailable' })
    expect(tookMs).toBeLessThan(2_500)
  }
}

async function expectRecovery(fleet: Fleet): Promise<void> {
  const reply = await eventually(
    async () => {
      const reply = await send(fleet, freshPhone())
      return reply.status === 202 && reply
    },
    { withinMs: 20_000, everyMs: 100 },
  )
  expect(await settle(fleet, [reply.body.id as string], 20_000)).toEqual({ sent: 1 })
}

describe('Redis', () => {
  test.for(['stopped', 'frozen'] as const)(
    '%s: sends and checks are 503 within 2.5 s; afterwards all works without a restart (I9, F4, F5)',
    { timeout: 90_000 },
    async (how) => {
      const fleet = await startFleet()
      await expectRecovery(fleet)

      if (how === 'stopped') await fleet.redis.stop()
      else fleet.redis.freeze()
      await expectUnavailable(fleet)
      const check = await fleet.post('/v1/captchas/check', {
        channel: 'sms',
        to: freshPhone(),
        code: '0000',
      })
      expect(check.status).toBe(503)
      expect(check.tookMs).toBeLessThan(2_500)

      if (how === 'stopped') await fleet.redis.start()
      else fleet.redis.thaw()
      await expectRecovery(fleet)
    },
  )

  test('absent at the start: the processes are up, not ready, and recover alone (F6)', async () => {
    const fleet = await startFleet({ workers: 0, apis: 1 })
    await fleet.redis.stop()
    const [api] = fleet.apis
    const readyz = async () =>
      (await admin(api, '/readyz')).json() as Promise<{ reasons?: string[] }>
    await eventually(
      async () => (await readyz()).reasons?.includes('redis is out of reach') ?? false,
    )
    expect((await admin(api, '/livez')).status).toBe(200)
    await fleet.redis.start()
    await eventually(async () => (await admin(api, '/readyz')).status === 200, {
      withinMs: 10_000,
    })
  }, 60_000)

  test('emptied after an accepted send: the code is gone and the notice ends expired, not lost (F8)', async () => {
    const fleet = await startFleet({ workers: 0 })
    const { body } = await send(fleet, freshPhone())
    await fleet.redis.stop()
    await fleet.redis.start(['--appendonly', 'no'])
    await fleet.startWorker()
    expect(await settle(fleet, [body.id as string], 30_000)).toEqual({ expired: 1 })
    expect(fleet.farEnd.calls.size).toBe(0)
  }, 90_000)

  test('emptied after an accepted notice: the reconciler carries it within 15 s (F8)', async () => {
    const fleet = await startFleet({ workers: 0 })
    const { body } = await fleet.post('/v1/notices', {
      channel: 'sms',
      to: freshPhone(),
      template: 'welcome',
      params: { name: 'Ada' },
    })
    await fleet.redis.stop()
    await fleet.redis.start(['--appendonly', 'no'])
    await fleet.startWorker()
    expect(await settle(fleet, [body.id as string], 15_000)).toEqual({ sent: 1 })
  }, 90_000)

  test('evicting keys: not ready, and the reason says what to set (F9)', async () => {
    const fleet = await startFleet({ workers: 0 })
    await fleet.redis.stop()
    await fleet.redis.start(['--maxmemory-policy', 'allkeys-lru'])
    const [api] = fleet.apis
    await eventually(async () => {
      const response = await admin(api, '/readyz')
      const { reasons = [] } = (await response.json()) as { reasons?: string[] }
      return response.status === 503 && reasons.some((reason) => reason.includes('noeviction'))
    })
  }, 60_000)
})

describe('PostgreSQL', () => {
  test.for(['stopped', 'frozen'] as const)(
    '%s: sends are 503 within 2.5 s and their quota is given back; checks go on; afterwards all works (I9, F12)',
    { timeout: 90_000 },
    async (how) => {
      const fleet = await startFleet()
      await expectRecovery(fleet)
      const to = freshPhone()

      if (how === 'stopped') await fleet.postgres.stop()
      else fleet.postgres.freeze()
      await expectUnavailable(fleet)
      expect((await send(fleet, to)).status).toBe(503)
      const check = await fleet.post('/v1/captchas/check', { channel: 'sms', to, code: '0000' })
      expect(check.status).toBe(410)

      if (how === 'stopped') await fleet.postgres.start()
      else fleet.postgres.thaw()
      await expectRecovery(fleet)
      // One a minute is all this number has: had the 503 kept it, this would be 429.
      expect((await send(fleet, to)).status).toBe(202)
      // And no row of a 503 is ever sent.
      const [row] = await fleet.query(
        'SELECT count(*)::int AS open FROM notice WHERE due_at IS NOT NULL AND claims > 0',
      )
      expect(row?.open).toBe(0)
    },
  )
})
