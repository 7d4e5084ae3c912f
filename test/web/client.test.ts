import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { createPosternClient } from '../../web/client.ts'
import { startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'

test('sends and checks; every refusal is a value with a separate code', async () => {
  const postern = await startPostern()
  const key = await publishableKey(postern.database)
  const client = createPosternClient({ src: `${postern.url}/`, key })
  const to = 'a@shop.example'
  const sent = await client.send({ channel: 'email', to, scene: 'login', idempotencyKey: 'once-1' })
  if (!sent.ok) throw new Error(sent.problem.code)
  expect(sent.answer).toMatchObject({ channel: 'email', state: 'pending', codeLength: 4 })
  // The same request again: the first answer, and nothing is sent.
  const again = await client.send({
    channel: 'email',
    to,
    scene: 'login',
    idempotencyKey: 'once-1',
  })
  expect(again).toEqual(sent)
  const limited = await client.send({ channel: 'email', to, scene: 'login' })
  if (limited.ok || limited.problem.code !== 'limited') throw new Error('not limited')
  expect(limited.problem.retryAfterMs).toBeGreaterThan(50_000)

  const code = await postern.codeFor(to)
  const check = { channel: 'email', to, scene: 'login', id: sent.answer.id } as const
  const wrong = await client.check({ ...check, code: code === '0000' ? '1111' : '0000' })
  expect(wrong).toMatchObject({ ok: false, problem: { code: 'code_mismatch', triesLeft: 2 } })
  const passed = await client.check({ ...check, code })
  expect(passed).toMatchObject({ ok: true, answer: { verified: true } })
  // Its answer may have been lost.
  expect(await client.check({ ...check, code })).toEqual(passed)
  const { id: _, ...withoutId } = check
  expect(await client.check({ ...withoutId, code })).toMatchObject({
    problem: { code: 'code_gone' },
  })
  expect(await client.send({ channel: 'sms', to: '12' })).toMatchObject({
    problem: { code: 'invalid_recipient' },
  })
  const other = createPosternClient({ src: postern.url, key: 'ppk_x' })
  expect(await other.send({ channel: 'email', to })).toMatchObject({
    problem: { code: 'unauthorized' },
  })
})

test('no answer of Postern, and no server there: unavailable, internal, unreachable', async () => {
  let [status, text] = [502, '<h1>Bad gateway</h1>']
  const server = createServer((_, response) =>
    response.writeHead(status, { 'retry-after': '7' }).end(text),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = createPosternClient({ src: `http://127.0.0.1:${port}`, key: 'ppk_x' })
  const ask = () => client.send({ channel: 'sms', to: '+8613800138000' })
  expect(await ask()).toEqual({ ok: false, problem: { code: 'unavailable', retryAfterMs: 7_000 } })
  status = 404
  expect(await ask()).toEqual({ ok: false, problem: { code: 'internal', retryAfterMs: 7_000 } })
  ;[status, text] = [200, 'not JSON']
  expect(await ask()).toMatchObject({ ok: false, problem: { code: 'internal' } })
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  expect(await ask()).toEqual({ ok: false, problem: { code: 'unreachable' } })
})
