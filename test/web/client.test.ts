import { createServer } from 'node:http'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createPosternClient } from '../../web/client.ts'
import { listen } from '../tools/listen.ts'
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
  const pass = passed.ok && passed.answer.pass
  expect(await client.check({ ...check, code })).toMatchObject({ ok: true, answer: { pass } })
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
  const client = createPosternClient({ src: await listen(server), key: 'ppk_x' })
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

/** Answers of a service, one after the other. */
function mockService(...answers: [status: number, body: object][]) {
  const asked: { known?: string }[] = []
  vi.stubGlobal('fetch', async (_: string, { body }: { body: string }) => {
    asked.push(JSON.parse(body))
    const [status, answer] = answers.shift() ?? expect.unreachable()
    return new Response(JSON.stringify(answer), { status })
  })
  return asked
}

describe('the token of a known browser', () => {
  const stored = new Map<string, string>()
  beforeEach(() => {
    stored.clear()
    vi.stubGlobal('localStorage', {
      getItem: (name: string) => stored.get(name) ?? null,
      setItem: (name: string, value: string) => void stored.set(name, value),
    })
  })
  afterEach(() => void vi.unstubAllGlobals())
  const client = createPosternClient({ src: 'https://codes.example', key: 'ppk_x' })
  const [ada, eve] = [
    { channel: 'sms', to: '+8613800138000' } as const,
    { channel: 'sms', to: '+8613800138001' } as const,
  ]
  const passes = (known: string) => [200, { verified: true, known }] as [number, object]

  test('kept after a right code for its address and key, without the address, and sent with later calls', async () => {
    const asked = mockService(passes('t.o.k'), [202, {}], [202, {}], [202, {}], passes('n.e.w'))
    await client.check({ ...ada, code: '1234' })
    expect(JSON.stringify([...stored])).not.toContain('138000')
    await client.send(ada)
    await client.send(eve)
    await createPosternClient({ src: 'https://codes.example', key: 'ppk_y' }).send(ada)
    await client.check({ ...ada, code: '1234' })
    expect(asked.map(({ known }) => known)).toEqual([
      undefined,
      't.o.k',
      undefined,
      undefined,
      't.o.k',
    ])
    expect([...stored.values()]).toEqual(['n.e.w'])
  })

  test('a pass of a mail is for no number, and keeps the token of the number', async () => {
    const passOf = (channel: string) =>
      `e30.${Buffer.from(JSON.stringify({ channel })).toString('base64url')}.x`
    const by = (channel: string, known: string) =>
      [200, { verified: true, known, pass: passOf(channel) }] as [number, object]
    mockService(by('voice', 'n.u.m'), by('email', 'm.a.i'), by('email', 'l.o.n'))
    await client.check({ id: 'v1', code: '1234' }, ada.to)
    await client.check({ id: 'v2', code: '1234' }, ada.to)
    expect([...stored.values()]).toEqual(['n.u.m'])
    await client.check({ channel: 'email', to: 'ada@shop.test', code: '1234' })
    expect([...stored.values()]).toEqual(['n.u.m', 'l.o.n'])
  })

  test('refused by a service of an older version → the same request without it', async () => {
    const wrong = { code: 'invalid_request', errors: [] }
    const asked = mockService(
      passes('t.o.k'),
      [400, wrong],
      [202, { id: 'n1' }],
      [400, wrong],
      [400, wrong],
    )
    await client.check({ ...ada, code: '1234' })
    expect(await client.send(ada)).toEqual({ ok: true, answer: { id: 'n1' } })
    expect(await client.send(ada)).toMatchObject({ problem: { code: 'invalid_request' } })
    expect(asked.map(({ known }) => known)).toEqual([
      undefined,
      't.o.k',
      undefined,
      't.o.k',
      undefined,
    ])
  })

  test('no storage → a stranger, and no error', async () => {
    vi.stubGlobal('localStorage', undefined)
    const asked = mockService(passes('t.o.k'), [202, {}])
    expect(await client.check({ ...ada, code: '1234' })).toMatchObject({ ok: true })
    expect(await client.send(ada)).toMatchObject({ ok: true })
    expect(asked[1]).not.toHaveProperty('known')
  })
})
