import { describe, expect, test } from 'vitest'
import { noLimits, type Postern, startPostern } from '../support/postern.ts'
import { eventually } from '../support/wait.ts'
import { freshEmail, freshPhone, noticeBody, rowOf, untilFinal } from './notices.ts'

const dead = (result: string) => ({ kind: 'sandbox', query: false, faults: [{ result }] })

/** Sends `count` notices one after the other, `everyMs` apart, and returns their ids. */
async function sendSteadily(
  postern: Postern,
  body: () => unknown,
  count: number,
  everyMs: number,
): Promise<string[]> {
  const startMs = performance.now()
  const sent: Promise<string>[] = []
  for (let index = 0; index < count; index++) {
    await eventually(() => performance.now() >= startMs + index * everyMs, { everyMs: 2 })
    sent.push(
      postern.post('/v1/notices', body()).then(({ status, body }) => {
        expect(status).toBe(202)
        return body.id
      }),
    )
  }
  return Promise.all(sent)
}

/** Milliseconds from creation to acceptance by a provider. */
async function waitsMs(postern: Postern, ids: readonly string[]): Promise<number[]> {
  const { rows } = await postern.database.pool.query(
    `SELECT extract(epoch FROM sent_at - created_at) * 1000 AS ms FROM notice
     WHERE id = ANY($1::uuid[]) ORDER BY 1`,
    [ids],
  )
  return rows.map(({ ms }) => Number(ms))
}

const at = (sorted: readonly number[], share: number) =>
  Math.round(sorted[Math.floor(sorted.length * share)] as number)

describe('one provider of two is dead', () => {
  test.for(['unavailable', 'hang'] as const)(
    '%s: messages go to the next within 2 s of its death, and SMS beside it is as fast as before (F14, F15)',
    { timeout: 60_000 },
    async (how) => {
      const postern = await startPostern({
        policyFile: {
          policies: noLimits,
          providers: {
            phone: { kind: 'sandbox' },
            dying: dead(how),
            spare: { kind: 'sandbox' },
          },
          routes: { sms: [{ use: ['phone'] }], email: [{ use: ['dying', 'spare'] }] },
        },
      })
      const alone = await sendSteadily(postern, () => noticeBody('sms', freshPhone()), 40, 25)
      await untilFinal(postern, alone)

      const [mails, beside] = await Promise.all([
        sendSteadily(postern, () => noticeBody('email', freshEmail()), 80, 50),
        sendSteadily(postern, () => noticeBody('sms', freshPhone()), 80, 50),
      ])
      await untilFinal(postern, [...mails, ...beside], 20_000)

      // The first 2 s may still be learning; whatever comes later waits on nobody.
      const late = await waitsMs(postern, mails.slice(40))
      const [before, during] = [await waitsMs(postern, alone), await waitsMs(postern, beside)]
      console.log(
        `${how}: mails after 2 s waited p50 ${at(late, 0.5)} p90 ${at(late, 0.9)} ms;`,
        `SMS p50 ${at(before, 0.5)} → ${at(during, 0.5)}, p90 ${at(before, 0.9)} → ${at(during, 0.9)} ms`,
      )
      // A call of the dead one takes five seconds.
      expect(at(late, 0.9)).toBeLessThan(3_000)
      expect(at(during, 0.5)).toBeLessThan(at(before, 0.5) + 1_000)
      for (const id of mails) expect(await rowOf(postern, id)).toMatchObject({ provider: 'spare' })
      const metrics = await (await fetch(`${postern.adminUrl}/metrics`)).text()
      expect(metrics).toMatch(/postern_provider_circuit_open\{provider="dying"[^}]*\} 1/)
    },
  )
})

test('the only provider is dead, then back: messages wait without using up tries, and all arrive (F14)', async () => {
  const to = freshPhone()
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      delivery: { tries: 1 },
      providers: {
        // Fails whatever goes to this number, once each: five in a row, and the circuit opens for everyone.
        phone: { kind: 'sandbox', faults: [{ to, result: 'unavailable' }] },
      },
      routes: { sms: [{ use: ['phone'] }] },
    },
  })
  const failing = await Promise.all(
    Array.from({ length: 5 }, () => postern.post('/v1/notices', noticeBody('sms', to))),
  )
  await eventually(async () => {
    const metrics = await (await fetch(`${postern.adminUrl}/metrics`)).text()
    return /postern_provider_circuit_open\{provider="phone"[^}]*\} 1/.test(metrics)
  })
  const good = await sendSteadily(postern, () => noticeBody('sms', freshPhone()), 20, 5)
  await untilFinal(postern, good, 30_000)
  for (const id of good) {
    const { state, attempts } = await rowOf(postern, id)
    expect(state).toBe('sent')
    expect(attempts).toHaveLength(1)
  }
  expect(failing.map(({ status }) => status)).toEqual(Array(5).fill(202))
}, 60_000)

test('pace 10 per 1s: never more in any second over two workers, all sent, and no try used', async () => {
  const policyFile = {
    policies: noLimits,
    providers: { phone: { kind: 'sandbox', pace: '10 per 1s' } },
    routes: { sms: [{ use: ['phone'] }] },
  }
  const postern = await startPostern({ policyFile })
  await startPostern({ policyFile, on: postern, roles: { api: false, worker: true } })
  const replies = await Promise.all(
    Array.from({ length: 35 }, () => postern.post('/v1/notices', noticeBody('sms', freshPhone()))),
  )
  const ids = replies.map(({ body }) => body.id)
  await untilFinal(postern, ids, 20_000)
  const { rows } = await postern.database.pool.query(
    `SELECT state, attempts, extract(epoch FROM (attempts -> 0 ->> 'at')::timestamptz) * 1000 AS ms
     FROM notice ORDER BY ms`,
  )
  expect(rows.every(({ state, attempts }) => state === 'sent' && attempts.length === 1)).toBe(true)
  const times = rows.map(({ ms }) => Number(ms))
  for (let index = 10; index < times.length; index++) {
    // The time is noted on our side of the limiter's answer, so it may be off by what that takes.
    expect((times[index] as number) - (times[index - 10] as number)).toBeGreaterThan(850)
  }
  expect((times.at(-1) as number) - (times[0] as number)).toBeLessThan(8_000)
}, 40_000)

test('stopped with a backlog before a slow provider: it ends within a call’s time, and another sends the rest, once each (I13, I22)', {
  timeout: 60_000,
}, async () => {
  const policyFile = {
    policies: noLimits,
    delivery: { concurrency: 2 },
    providers: { phone: { kind: 'sandbox', faults: [{ delay: '200ms' }] } },
    routes: { sms: [{ use: ['phone'] }] },
  }
  const api = await startPostern({ policyFile, roles: { api: true, worker: false } })
  const replies = await Promise.all(
    Array.from({ length: 60 }, () => api.post('/v1/notices', noticeBody('sms', freshPhone()))),
  )
  const first = await startPostern({ policyFile, on: api, roles: { api: false, worker: true } })
  await eventually(async () => (await api.messages()).length > 0, { withinMs: 10_000 })
  await first.stop()
  const left = 60 - (await api.messages()).length
  expect(left).toBeGreaterThan(0)
  const { rows } = await api.database.pool.query(
    `SELECT state, claims, jsonb_array_length(attempts) AS tries, count(*)::int AS n FROM notice
     GROUP BY 1, 2, 3 ORDER BY 1`,
  )
  expect(rows).toEqual([
    { state: 'pending', claims: 0, tries: 0, n: left },
    { state: 'sent', claims: 1, tries: 1, n: 60 - left },
  ])
  await startPostern({ policyFile, on: api, roles: { api: false, worker: true } })
  await untilFinal(
    api,
    replies.map(({ body }) => body.id),
    30_000,
  )
  expect(await api.messages()).toHaveLength(60)
})
