/** Verifications with several ways, over HTTP: sends, next ways, checks, ends. */
import { describe, expect, test } from 'vitest'
import { newPerson } from '../tools/people.ts'
import { noLimits, type Postern, startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { eventually } from '../tools/wait.ts'

const by = (provider: string) => [{ use: [provider] }]

const policyFile = {
  code: { length: 6, triesPerCode: 3 },
  policies: noLimits,
  providers: {
    ok: { kind: 'sandbox' },
    refuses: { kind: 'sandbox', faults: [{ result: 'rejected' }] },
  },
  workflows: {
    both: ['sms', 'email'],
    three: ['sms', 'voice', 'email'],
    calls: ['voice', 'sms'],
    nowhere: ['telegram'],
  },
  browser: { workflows: ['both'] },
  routes: { sms: by('ok'), email: by('ok'), voice: by('ok') },
}

const shared = await startPostern({ policyFile, env: { LOG_LEVEL: 'error' } })

function of({ post, get, codeFor }: Pick<Postern, 'post' | 'get' | 'codeFor'>) {
  return {
    send: (workflow: string, person: object, options = {}) =>
      post('/v1/captchas', { workflow, ...person }, options),
    next: (id: string, options = {}) => post(`/v1/captchas/${id}/next`, {}, options),
    way: (id: string, options = {}) => post(`/v1/captchas/${id}/way`, {}, options),
    cancel: (id: string, options = {}) => post(`/v1/captchas/${id}/cancel`, {}, options),
    check: (id: string, code: string) => post('/v1/captchas/check', { id, code }),
    view: async (id: string) => (await get(`/v1/captchas/${id}`)).body,
    codeFor,
  }
}
const { send, next, way: wayNow, cancel, check, view, codeFor } = of(shared)

/** The checks that support sees, the latest first. */
async function checksOf(channel: string, to: string): Promise<string[]> {
  const { body } = await shared.post('/v1/recipients/lookup', { channel, to })
  return body.checks.map(({ result }: { result: string }) => result)
}

test('a send begins the first way; next begins the second; the code of either passes, once for all', async () => {
  for (const typed of ['to', 'email'] as const) {
    const person = newPerson()
    const sent = await send('both', person)
    expect(sent).toMatchObject({
      status: 202,
      body: {
        workflow: 'both',
        way: { channel: 'sms', index: 1, of: 2, next: 'email' },
        to: expect.stringContaining('****'),
        scene: 'default',
        state: 'pending',
        codeLength: 6,
      },
    })
    const { id } = sent.body
    expect(sent.headers.get('location')).toBe(`/v1/captchas/${id}`)
    const second = await next(id)
    expect(second).toMatchObject({
      status: 202,
      body: { id, way: { channel: 'email', index: 2, of: 2 } },
    })
    expect(second.body.way).not.toHaveProperty('next')
    expect(await next(id)).toMatchObject({ status: 409, body: { code: 'no_more_ways' } })
    const code = await codeFor(person[typed])
    const passed = await check(id, code)
    expect(passed).toMatchObject({ status: 200, body: { verified: true, id, scene: 'default' } })
    const channel = typed === 'to' ? 'sms' : 'email'
    const { pass } = passed.body
    const verified = await shared.post('/v1/passes/verify', { pass, channel, to: person[typed] })
    expect(verified).toMatchObject({
      status: 200,
      body: { valid: true, channel, to: person[typed] },
    })
    // Support finds the check at the address whose code was typed.
    await eventually(async () => expect(await checksOf(channel, person[typed])).toEqual(['passed']))
    // A repeat by the same key within a minute gets the same pass.
    expect((await check(id, code)).body.pass).toBe(pass)
    expect(await next(id)).toMatchObject({ status: 410 })
    expect(await check(id, await codeFor(person[typed === 'to' ? 'email' : 'to']))).toMatchObject({
      status: 410,
    })
    await eventually(async () => expect((await view(id)).ended).toBe('passed'))
    expect((await view(id)).ways.filter((each: { passed?: true }) => each.passed)).toMatchObject([
      { channel },
    ])
  }
})

test('ways without an address or a route are left out; none left is 400, as are an unknown workflow and a channel or code beside it', async () => {
  const { to, email } = newPerson()
  expect((await send('three', { to })).body.way).toEqual({
    channel: 'sms',
    index: 1,
    of: 2,
    next: 'voice',
  })
  expect((await send('calls', { to, email })).body.way).toMatchObject({ channel: 'voice', of: 2 })
  for (const [workflow, more, path] of [
    ['nowhere', {}, 'workflow'],
    ['unknown', {}, 'workflow'],
    ['both', { channel: 'sms' }, 'channel'],
    ['both', { code: '123456' }, 'code'],
  ] as const) {
    const refused = await send(workflow, { to, ...more })
    expect(refused).toMatchObject({ status: 400, body: { errors: [{ path }] } })
  }
  expect(await send('both', { to: 'no number' })).toMatchObject({ status: 422 })
  expect(await send('both', { to, email: 'no address' })).toMatchObject({ status: 422 })
})

test('one budget of guesses counts for all ways, by the id and by each address; then it has ended', async () => {
  const person = newPerson()
  const { id } = (await send('both', person)).body
  const first = await codeFor(person.to)
  await next(id)
  const second = await codeFor(person.email)
  const wrong = [first, second].includes('000000') ? '000001' : '000000'
  expect(await check(id, wrong)).toMatchObject({ status: 422, body: { triesLeft: 2 } })
  const at = (channel: string, to: string, code: string) =>
    shared.post('/v1/captchas/check', { channel, to, code })
  expect(await at('email', person.email, wrong)).toMatchObject({
    status: 422,
    body: { triesLeft: 1 },
  })
  expect(await at('sms', person.to, wrong)).toMatchObject({ status: 422, body: { triesLeft: 0 } })
  expect(await check(id, first)).toMatchObject({ status: 410 })
  expect(await next(id)).toMatchObject({ status: 410 })
  await eventually(async () => expect((await view(id)).ended).toBe('tries'))
  // Support finds a wrong code at each address of the verification, or at the one that the check named.
  const found = ['gone', 'mismatch', 'mismatch']
  await eventually(async () => expect(await checksOf('sms', person.to)).toEqual(found))
  await eventually(async () => expect(await checksOf('email', person.email)).toEqual(found))
})

test('by an address, the code of that way passes, and the answer has the id of the verification', async () => {
  const person = newPerson()
  const { id } = (await send('both', person)).body
  await next(id)
  const code = await codeFor(person.email)
  const passed = await shared.post('/v1/captchas/check', {
    channel: 'email',
    to: person.email,
    code,
  })
  expect(passed).toMatchObject({ status: 200, body: { id } })
})

test.each(['x', 'é', '01a1fdb3', '\u{1d98f}'])('%s, which is no id, is 404', async (id) => {
  const path = `/v1/captchas/${encodeURIComponent(id)}`
  expect((await shared.get(path)).status).toBe(404)
  expect((await next(encodeURIComponent(id))).status).toBe(404)
  expect((await wayNow(encodeURIComponent(id))).status).toBe(404)
  expect((await cancel(encodeURIComponent(id))).status).toBe(404)
  expect(await check(id, '123456')).toMatchObject({
    status: expect.toSatisfy((s) => [400, 410].includes(s)),
  })
})

test('by an address, a way that has not begun has no code: 410, and no try is taken', async () => {
  const { to, email } = newPerson()
  const { id } = (await send('three', { to, email })).body
  const code = await codeFor(to)
  for (const [channel, address] of [
    ['voice', to],
    ['email', email],
  ]) {
    const checked = await shared.post('/v1/captchas/check', { channel, to: address, code })
    expect(checked).toMatchObject({ status: 410, body: { code: 'code_gone' } })
  }
  expect(await check(id, '000000')).toMatchObject({ status: 422, body: { triesLeft: 2 } })
  expect(await check(id, code)).toMatchObject({ status: 200 })
})

test('cancel: no code passes, no way begins, and an unknown id is 404', async () => {
  const person = newPerson()
  const { id } = (await send('both', person)).body
  const code = await codeFor(person.to)
  expect((await cancel(id)).status).toBe(204)
  expect((await cancel(id)).status).toBe(204)
  expect(await check(id, code)).toMatchObject({ status: 410 })
  expect(await next(id)).toMatchObject({ status: 410 })
  const unknown = id.replace(/^.{8}/, '00000000')
  expect((await cancel(unknown)).status).toBe(404)
  expect((await next(unknown)).status).toBe(404)
  expect((await check(unknown, code)).status).toBe(410)
  expect((await shared.get(`/v1/captchas/${unknown}`)).status).toBe(404)
})

test('a new send to the number ends the verification, by any channel and by a workflow; a verification ends a plain code', async () => {
  for (const body of [{ channel: 'sms' }, { channel: 'voice' }, { workflow: 'both' }]) {
    const { to, email } = newPerson()
    const { id } = (await send('both', { to, email })).body
    const code = await codeFor(to)
    expect((await shared.post('/v1/captchas', { ...body, to })).status).toBe(202)
    expect(await next(id)).toMatchObject({ status: 410 })
    expect(await check(id, code)).toMatchObject({ status: 410 })
    expect((await view(id)).ended).toBe('gone')
  }
  const { to } = newPerson()
  await shared.post('/v1/captchas', { channel: 'sms', to })
  const plain = await codeFor(to)
  await send('both', { to })
  const now = await shared.post('/v1/captchas/check', { channel: 'sms', to, code: plain })
  expect(now.status).toBe(422)
})

test('the same Idempotency-Key, also at once: one verification, one next way, and the same answers', async () => {
  const person = newPerson()
  const headers = { 'idempotency-key': `send-${person.to}` }
  const first = await send('three', person, { headers })
  const again = await send('three', person, { headers })
  expect(again.body).toEqual(first.body)
  const { id } = first.body
  const key = { headers: { 'idempotency-key': `${id}-${first.body.way.index}` } }
  const pressed = await Promise.all([next(id, key), next(id, key)])
  const second = await next(id, key)
  expect(second).toMatchObject({ status: 202, body: { way: { index: 2 } } })
  for (const { status, body } of pressed) {
    if (status === 202) expect(body).toEqual(second.body)
    else expect(body.code).toBe('idempotency_in_progress')
  }
  expect((await view(id)).ways[2].state).toBe('waiting')
  expect(await next(id, { headers: { 'idempotency-key': `send-${person.to}` } })).toMatchObject({
    status: 422,
    body: { code: 'idempotency_key_reused' },
  })
})

test('ten requests for the next way at once begin one', async () => {
  const person = newPerson()
  const { id } = (await send('three', person)).body
  const answers = await Promise.all(Array.from({ length: 10 }, () => next(id)))
  const begun = new Set(
    answers.filter(({ status }) => status === 202).map(({ body }) => body.way.index),
  )
  expect([...begun].sort()[0]).toBe(2)
  const { rows } = await shared.database.pool.query(
    'SELECT channel, count(*)::int AS count FROM notice WHERE verification_id = $1 GROUP BY channel',
    [id],
  )
  for (const { count } of rows) expect(count).toBe(1)
})

describe('a way that fails', () => {
  test('the next one begins without a request, and the view has the reason', async () => {
    const postern = await startPostern({
      policyFile: { ...policyFile, routes: { ...policyFile.routes, sms: by('refuses') } },
    })
    const failing = of(postern)
    const person = newPerson()
    const { id } = (await failing.send('both', person)).body
    const code = await failing.codeFor(person.email)
    expect(await failing.way(id)).toMatchObject({
      status: 200,
      body: { id, workflow: 'both', way: { channel: 'email', index: 2, of: 2 }, codeLength: 6 },
    })
    expect(await failing.view(id)).toMatchObject({
      ways: [{ channel: 'sms', state: 'failed', error: 'rejected' }, { channel: 'email' }],
    })
    expect(await failing.next(id)).toMatchObject({ status: 409 })
    expect(await failing.check(id, code)).toMatchObject({ status: 200, body: { id } })
  })

  test('a way that a limit refuses is left out, and the one after it begins at once', async () => {
    const captcha = [{ name: 'calls', key: '{channel}:{to}', fixed: '1 per 1h' }]
    const postern = await startPostern({
      policyFile: {
        ...policyFile,
        policies: { ...noLimits, captcha },
        routes: { ...policyFile.routes, sms: by('refuses') },
      },
    })
    const failing = of(postern)
    const person = newPerson()
    await postern.post('/v1/captchas', { channel: 'voice', to: person.to })
    const { id } = (await failing.send('three', person)).body
    await failing.codeFor(person.email)
    expect((await failing.view(id)).ways).toMatchObject([
      { state: 'failed' },
      { state: 'left_out' },
      { channel: 'email' },
    ])
  })

  test('at next, if limits refuse all ways left: 429 with the shortest wait, and nothing is used up', async () => {
    const captcha = [{ name: 'mails', key: '{channel}:{to}', fixed: '1 per 2h' }]
    const postern = await startPostern({
      policyFile: { ...policyFile, policies: { ...noLimits, captcha } },
    })
    const limited = of(postern)
    const person = newPerson()
    await postern.post('/v1/captchas', { channel: 'email', to: person.email, scene: 'other' })
    const { id } = (await limited.send('both', person)).body
    expect(await limited.next(id)).toMatchObject({
      status: 429,
      body: { rule: 'mails', policy: 'captcha' },
    })
    expect((await limited.view(id)).ways[1].state).toBe('waiting')
    expect(await limited.send('both', person)).toMatchObject({ status: 429 })
  })
})

test('way: the answer of the send and of next again, and no way begins; 410 when it has ended', async () => {
  const { to, email } = newPerson()
  const { resendAt: _, expiresAt: _1, ...sent } = (await send('both', { to, email })).body
  const { id } = sent
  for (let time = 0; time < 2; time++) {
    expect(await wayNow(id)).toMatchObject({ status: 200, body: sent })
  }
  expect((await view(id)).ways[1].state).toBe('waiting')
  const { resendAt: _2, expiresAt: _3, ...second } = (await next(id)).body
  expect(await wayNow(id)).toMatchObject({ status: 200, body: second })
  expect((await wayNow(id.replace(/^.{8}/, '00000000'))).status).toBe(404)
  const wrong = (await codeFor(to)) === '000000' ? '000001' : '000000'
  const code = await codeFor(email)
  for (let time = 0; time < 3; time++) {
    await check(id, code === wrong ? '000002' : wrong)
  }
  expect(await wayNow(id)).toMatchObject({ status: 410 })
})

test('a page: only workflows that browser.workflows lists, next for verifications of pages, no cancel', async () => {
  const origin = 'https://shop.example'
  const key = await publishableKey(shared.database, { app: 'default', origins: [origin] })
  const options = { key, headers: { origin } }
  const person = newPerson()
  const sent = await send('both', person, options)
  expect(sent.status).toBe(202)
  const { id } = sent.body
  expect(await next(id, options)).toMatchObject({ status: 202 })
  expect((await cancel(id, options)).status).toBe(403)
  expect(await send('three', newPerson(), options)).toMatchObject({ status: 400 })
  const ofServer = (await send('both', newPerson())).body.id
  expect(await next(ofServer, options)).toMatchObject({ status: 404 })
  expect(await wayNow(ofServer, options)).toMatchObject({ status: 404 })
  expect(await wayNow(id, options)).toMatchObject({ status: 200, body: { way: { index: 2 } } })
  const other = await publishableKey(shared.database, { app: 'other', origins: [origin] })
  expect((await wayNow(id, { ...options, key: other })).status).toBe(404)
  expect((await wayNow(id, { ...options, headers: { origin: 'https://x.test' } })).status).toBe(403)
})
