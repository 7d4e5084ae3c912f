/** The same as late-answers.test.ts with the usual time limits, and a worker that stops meanwhile. */
import { expect, test } from 'vitest'
import { startFarEnd } from '../tools/far-end.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { ended, expectOneMessageEach } from './late-far-ends.ts'

test('webhook and Twilio after 8 s, mail servers after 7 s and 12 s → one message each, sent, and no other provider is asked', async () => {
  await expectOneMessageEach({ timeout: '5s', httpMs: 8_000, mailMs: [7_000, 12_000] })
}, 120_000)

test('a provider hangs: codes of another provider go out meanwhile, and a stop does not wait for its late answers', async () => {
  const [hanging, other] = [await startFarEnd(), await startFarEnd()]
  hanging.behave = () => 'hang'
  const secret = 'a-secret-of-16-or-more'
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      delivery: { timeout: '5s' },
      providers: {
        hanging: { kind: 'webhook', url: hanging.url, secret },
        other: { kind: 'webhook', url: other.url, secret },
      },
      routes: {
        sms: [{ match: { country: ['GB'] }, use: ['hanging'] }, { use: ['other'] }],
        email: [],
      },
    },
  })
  const send = async (to: string) =>
    (await postern.post('/v1/captchas', { channel: 'sms', to })).body.id
  const held: string[] = []
  for (let n = 0; n < 20; n++) held.push(await send(`+4474001234${10 + n}`))
  await eventually(() => hanging.calls.size > 4)
  for (let n = 0; n < 20; n++) {
    expect(await ended(postern, await send(`+86138001380${10 + n}`))).toMatchObject({
      state: 'sent',
    })
  }
  await postern.stop()
  const { rows } = await postern.database.pool.query(
    'SELECT state, attempts FROM notice WHERE id = ANY($1)',
    [held],
  )
  // Each call ended with its time limit of 5 s, not after the further 30 s for its answer.
  const calls = rows.flatMap(({ attempts }) => attempts)
  expect(calls.length).toBeGreaterThan(4)
  for (const { outcome, durationMs } of calls) {
    expect(outcome).toBe('unknown')
    expect(durationMs).toBeLessThan(25_000)
  }
  expect(rows.map(({ state }) => state)).not.toContain('sending')
}, 120_000)
