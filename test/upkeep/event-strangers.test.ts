import { expect, it } from 'vitest'
import { brokenHttp, http, startMisbehavingServer } from '../tools/misbehaving-server.ts'
import { eventually } from '../tools/wait.ts'
import { openOutbox, secret } from './open-outbox.ts'
import { startReceiver } from './receiver.ts'

it('receivers that misbehave, each in its way, beside a good one → the good one gets every event, each other event is tried again', async () => {
  const servers = await Promise.all(
    [...brokenHttp, ['no byte is read', 'never reads', http] as const].map(
      ([, misbehaviour, protocol]) => startMisbehavingServer(protocol, misbehaviour),
    ),
  )
  const good = await startReceiver()
  const outbox = await openOutbox({ pollMs: 50, isClockFrozen: true })
  for (let n = 0; n < 20; n++) {
    await Promise.all([
      outbox.add(n, 'good'),
      ...servers.map((_, index) => outbox.add(1_000 * (index + 1) + n, `app-${index}`)),
    ])
  }
  outbox.start([
    { url: good.url, secret, app: ['good'] },
    ...servers.map(({ port }, index) => ({
      url: `http://127.0.0.1:${port}/`,
      secret,
      app: [`app-${index}`],
    })),
  ])
  await eventually(() => good.told.length === 20)
  expect(new Set(good.told.map(({ event }) => event.data.n)).size).toBe(20)
  // Each waits for its next try, or for the receiver's answer.
  await eventually(async () => (await outbox.count()) === 20 * servers.length)
  await eventually(async () => (await outbox.told('failed')) >= brokenHttp.length)
  expect(await outbox.told('given_up')).toBe(0)
  for (const [index, { bytesSent, connections }] of servers.entries()) {
    if (index === brokenHttp.length) continue
    await eventually(() => connections.open === 0)
    expect(bytesSent()).toBeLessThan(20 * 16_000_000)
  }
})
