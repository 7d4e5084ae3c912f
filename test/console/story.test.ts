/**
 * The story of one recipient in the console: its contents, the values that it never shows, and the actions of
 * support.
 */
import { describe, expect, test } from 'vitest'
import { untilFinal } from '../delivery/notices.ts'
import { newPhone, otherThan } from '../tools/people.ts'
import { eventually } from '../tools/wait.ts'
import { type Client, openConsole } from './open-console.ts'

const testNumber = '+15005550006'
const { postern, keys, createOperator, client } = await openConsole({
  policyFile: {
    testing: { recipients: [{ to: testNumber, code: '4071' }], until: '2099-12-31' },
    recipients: { countries: ['CN'] },
    browser: { rules: [] },
    policies: {
      captcha: [
        {
          name: 'recipient',
          key: '{app}:{channel}:{to}:{lane}',
          sliding: ['1 per 60s', '5 per 1h'],
        },
        { name: 'ip', key: '{app}:{ip}', sliding: '60 per 10m' },
        // An observed rule counts and refuses nothing.
        { name: 'watched', key: '{app}:{to}', sliding: '1 per 24h', mode: 'observe' },
      ],
      notice: [],
      check: [
        {
          name: 'guesses',
          key: '{app}:{channel}:{to}:{ip}',
          lockout: { limit: 3, window: '5m', lock: '15m' },
        },
      ],
    },
  },
})
const operator = await createOperator()
const anna = client()
await anna.signIn(operator.token)

const maskOf = (number: string) => `+8613****${number.slice(-4)}`
const send = (to: string, more = {}, key = postern.key) =>
  postern.post('/v1/captchas', { channel: 'sms', to, ...more }, { key })
const find = (q: string, who: Client = anna, more = {}) => who.submit('/search', { q, ...more })
/** The story when it has these words: refusals and checks are written a moment later. */
const storyWith = (to: string, ...words: string[]) =>
  eventually(async () => {
    const { text } = await find(to)
    return words.every((word) => text.includes(word)) && text
  })
/** The addresses of the story's forms. */
const addressIn = (text: string) => /action="(\/story\/[^"]+)\/reset"/.exec(text)?.[1] ?? ''

describe('the search', () => {
  test.each([
    ['one out of a chat', '\u202a(+86)\u00a0138.0013.8000\u202c', '+8613****8000'],
    ['an address out of a mail', '<mailto:ada@example.com>', 'a***@example.com'],
  ])('takes %s', async (_, q, masked) => {
    const { status, text } = await find(q)
    expect(status).toBe(200)
    expect(text).toContain(`<h1>${masked}</h1>`)
    expect(text).toContain('No code was requested')
  })

  test('takes a notice id in capitals, and marks that notice in its story', async () => {
    const to = newPhone()
    const { body } = await send(to)
    const { text } = await find(` ${body.id.toUpperCase()} `)
    expect(text).toContain(`<h1>${maskOf(to)}</h1>`)
    expect(text).toContain(`href="/notices/${body.id}" aria-current="true"`)
  })

  test.each([
    '',
    'hello',
    '12',
    '<script>alert(1)</script>',
    '"><img src=x>',
    `${'9'.repeat(300)}`,
  ])('%j is none of these: 422 in words, what was typed is kept and escaped', async (q) => {
    const { status, text } = await find(q)
    expect(status).toBe(422)
    expect(text).toContain('Enter a phone number')
    expect(text).not.toContain('<script>alert')
    expect(text).not.toContain('<img src=x')
  })

  test('an unknown notice id: 404; a wrong IP address: 422', async () => {
    expect((await find('019aa000-0000-7000-8000-000000000000')).status).toBe(404)
    expect((await find(newPhone(), anna, { ip: '1.2.3' })).status).toBe(422)
  })

  test('the recipient is in no address, and a sealed one that was changed is 404', async () => {
    const to = newPhone()
    const csrf = /name="csrf" value="([^"]+)"/.exec((await anna.get('/')).text)?.[1] as string
    const { headers } = await anna.post('/search', { q: to, csrf })
    const path = headers.get('location') as string
    expect(path).toMatch(/^\/story\/[\w-]{60,}$/)
    const opened = Buffer.from(path.slice(7), 'base64url').toString('latin1')
    expect(opened).not.toContain(to.slice(-8))
    const changed = path.slice(0, -2) + (path.endsWith('AA') ? 'BB' : 'AA')
    expect((await anna.get(path)).status).toBe(200)
    expect((await anna.get(changed)).status).toBe(404)
    expect((await anna.get('/story/x')).status).toBe(404)
  })
})

describe('the story', () => {
  test('asked, sent, refused by which rule and until when; what is allowed when', async () => {
    const to = newPhone()
    const { body } = await send(to, { scene: 'login' })
    await postern.messageFor(body.id)
    await send(to, { scene: 'login' })
    const text = await storyWith(to, 'Refused by captcha.recipient', 'sandbox: accepted it')
    expect(text).toContain('Code requested: accepted')
    expect(text).toContain('for login')
    expect(text).toMatch(/The rule “recipient” refuses requests for another \d+ s/)
    expect(text).toMatch(/This recipient can request a code in \d+ s\./)
    expect(text).toContain('login: 3 tries left')
  })

  test('the trace of a sampled send, by the id that a collector searches for', async () => {
    const [traced, plain] = [newPhone(), newPhone()]
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
    const { body } = await send(traced)
    await postern.database.pool.query('UPDATE notice SET trace_parent = $2 WHERE id = $1', [
      body.id,
      `00-${traceId}-00f067aa0ba902b7-01`,
    ])
    await send(plain)
    const { text } = await find(traced)
    expect(text).toContain(`trace <span class="id">${traceId}</span>`)
    expect(text).not.toContain('00f067aa0ba902b7')
    expect((await find(plain)).text).not.toContain('trace <')
  })

  test('many calls of one outage are one entry: how many, and until when', async () => {
    const to = newPhone()
    const { body } = await send(to)
    // Until then, the worker can write over the attempts.
    await untilFinal(postern, [body.id])
    const outage = [{ provider: 'sandbox', outcome: 'unavailable', durationMs: 2 }].map((one) => ({
      ...one,
      at: new Date(Date.now() - 60_000).toISOString(),
      latestAt: new Date().toISOString(),
      count: 12,
    }))
    await postern.database.pool.query(
      'UPDATE notice SET attempts = $2::jsonb || attempts WHERE id = $1',
      [body.id, JSON.stringify(outage)],
    )
    const text = await storyWith(to, 'sandbox: not available, did not accept it')
    expect(text).toContain('12 times until')
    expect(text.match(/times until/g)).toHaveLength(1)
  })

  test('checked wrongly until it locked', async () => {
    const to = newPhone()
    const { body } = await send(to)
    const code = otherThan(await postern.codeFor(body.id))
    for (let tries = 0; tries < 4; tries++) {
      await postern.post('/v1/captchas/check', { channel: 'sms', to, code })
    }
    const text = await storyWith(to, 'Refused by check.guesses')
    expect(text.match(/Code checked: wrong/g)).toHaveLength(3)
    // The third guess was compared, and began the lock. Only the fourth was refused.
    expect(text.match(/Refused by check.guesses/g)).toHaveLength(1)
    expect(text.match(/Locked by check.guesses/g)).toHaveLength(1)
    expect(text).toContain('Locked for 15 min')
    // Only one statement: the page never claims that a new code would pass, or that the code can be typed again.
    expect(text).toContain(
      'Checks are locked for 15 min after wrong codes. A new code does not end the lock.',
    )
    expect(text).not.toContain('can request a code')
    expect(text).not.toContain('a wrong code was typed')
    expect(text).not.toContain('Request a new code')
  })

  test('a known browser: its limits and tries stand beside those for strangers, and a reset ends it', async () => {
    const to = newPhone()
    const code = await postern.codeFor((await send(to)).body.id)
    const check = { channel: 'sms', to, code, known: true }
    const { known } = (await postern.post('/v1/captchas/check', check)).body
    expect((await send(to)).status).toBe(429)
    expect((await send(to, { known })).status).toBe(202)
    const text = await storyWith(to, '1h · known browsers', '1h · strangers')
    expect(text).toContain('default: 3 tries left (known browsers: 3 tries left), until')
    const form = { app: 'default', lane: 'on', reason: 'ticket 12' }
    const done = await anna.submit(`${addressIn(text)}/reset`, form)
    expect(done.text).toContain('Done and recorded.')
    await storyWith(to, 'known browsers ended')
    expect((await send(to, { known })).status).toBe(429)
  })

  test('no code, no whole number, nowhere', async () => {
    const to = newPhone()
    const { body } = await send(to)
    const code = await postern.codeFor(body.id)
    await storyWith(to, 'sandbox: accepted it')
    const pages = await Promise.all(
      ['/', `/notices/${body.id}`, '/notices', '/delivery', '/operations', '/events', '/keys'].map(
        (path) => anna.get(path),
      ),
    )
    for (const { text } of [...pages, await find(to)]) {
      // The digits of a code may be in a time or an id by chance, but never alone.
      expect(text.replaceAll(/\d{4}-\d\d-\d\d/g, '')).not.toMatch(new RegExp(`>[^<]*\\b${code}\\b`))
      expect(text).not.toContain(to)
      expect(text).not.toContain(to.slice(-8))
    }
  })

  test('a test recipient, and a country that is not allowed', async () => {
    expect((await find(testNumber)).text).toContain('This is a test recipient')
    expect((await find('+447400123456')).text).toContain('Messages to this country are not allowed')
  })

  test('words of callers are text: a scene is plain, a reason is escaped', async () => {
    const to = newPhone()
    await send(to)
    const address = addressIn((await find(to)).text)
    const reason = `<b onmouseover=alert(1)>"quoted" & 'so'`
    await anna.submit(`${address}/reset`, { app: 'default', limits: 'on', reason })
    for (const { text } of [await find(to), await anna.get('/operations')]) {
      expect(text).toContain('&#60;b onmouseover=alert(1)&#62;&#34;quoted&#34; &#38; &#39;so&#39;')
      expect(text).not.toContain('<b onmouseover')
    }
  })

  test('a notice whose recipient has left the tables: the notice alone', async () => {
    const { body } = await send(newPhone())
    await postern.messageFor(body.id)
    await postern.database.pool.query('UPDATE notice SET recipient = NULL WHERE id = $1', [body.id])
    const { status, text } = await anna.get(`/notices/${body.id}`)
    expect(status).toBe(200)
    expect(text).toContain('Only the notice itself is left')
    expect(text).toContain('Code requested: accepted')
  })
})

describe('reset', () => {
  test('lets the next code be sent at once, and stands in the story with name and reason', async () => {
    const to = newPhone()
    await send(to)
    expect((await send(to)).status).toBe(429)
    const address = addressIn((await find(to)).text)
    const form = { app: 'default', limits: 'on', lock: 'on', reason: 'ticket 4711, called back' }
    const { text } = await anna.submit(`${address}/reset`, form)
    expect(text).toContain('Done and recorded.')
    expect(text).toContain('anna: limits reset, lock lifted')
    expect(text).toContain('ticket 4711, called back')
    await eventually(async () => (await send(to)).status === 202)
  })

  test.each([
    ['nothing chosen', { reason: 'x' }, 'Choose what to reset'],
    ['no reason', { limits: 'on', reason: ' ' }, 'Give a reason'],
    ['a reason of two lines', { limits: 'on', reason: 'a\nb' }, 'Give a reason'],
    [
      'a reason that names the recipient',
      { limits: 'on', reason: 'NUMBER called' },
      'contains the recipient',
    ],
  ])('%s: 422, nothing recorded, and no refresh loses the form', async (_, form, says) => {
    const to = newPhone()
    const address = addressIn((await find(to)).text)
    const reason = form.reason.replace('NUMBER', to)
    const { status, text } = await anna.submit(`${address}/reset`, {
      app: 'default',
      ...form,
      reason,
    })
    expect(status).toBe(422)
    expect(text).toContain(says)
    expect(text).not.toContain('data-refresh-ms')
    expect((await find(to)).text).not.toContain('limits reset')
    expect((await anna.get(`${address}/reset`)).status).toBe(200)
  })
})

test.each(['reset', 'reveal'])(
  '%s by a form that names no app: 404, and nothing recorded',
  async (name) => {
    const to = newPhone()
    const address = addressIn((await find(to)).text)
    const form = { limits: 'on', reason: 'ticket 13' }
    expect((await anna.submit(`${address}/${name}`, form)).status).toBe(404)
    const { body } = await postern.post('/v1/recipients/lookup', { channel: 'sms', to })
    expect(body.operations).toEqual([])
  },
)

describe('the whole recipient', () => {
  test('is shown to who asked, with a reason that is recorded first; to no other operator, and not for ever', async () => {
    const to = newPhone()
    const address = addressIn((await find(to)).text)
    const { text } = await anna.submit(`${address}/reveal`, { app: 'default', reason: 'ticket 12' })
    expect(text).toContain(`<h1>${to}</h1>`)
    expect(text).toContain('anna: shown in full')
    const { body } = await postern.post('/v1/recipients/lookup', { channel: 'sms', to })
    expect(body.operations).toEqual([
      { at: expect.any(String), by: operator.id, what: ['reveal'], reason: 'ticket 12' },
    ])
    const ben = client()
    await ben.signIn((await createOperator({ name: 'ben' })).token)
    const handedOn = await ben.get(addressIn(text))
    expect(handedOn.status).toBe(200)
    expect(handedOn.text).toContain(maskOf(to))
    expect(handedOn.text).not.toContain(to)
  })

  test('without a reason: 422, masked, nothing recorded', async () => {
    const to = newPhone()
    const address = addressIn((await find(to)).text)
    const { status, text } = await anna.submit(`${address}/reveal`, { app: 'default', reason: '' })
    expect(status).toBe(422)
    expect(text).not.toContain(to)
    expect((await find(to)).text).not.toContain('shown in full')
  })
})

/**
 * A link of a colleague with rights that this operator lacks: it opens and reveals nothing, and no link is made from
 * it.
 */
async function handedOnTo(other: Client, address: string): Promise<void> {
  const sealed = address.replace('/story/', '')
  expect(sealed).toMatch(/^[\w-]{60,}$/)
  expect((await other.get(address)).status).toBe(404)
  const form = { app: 'shop', limits: 'on', reason: 'x' }
  expect((await other.submit(`${address}/reveal`, form)).status).toBe(404)
  expect((await other.submit(`${address}/reset`, form)).status).toBe(404)
  expect((await find('', other, { of: sealed })).status).toBe(422)
}

describe('apps', () => {
  test('an operator of one app may hand a story on to the next of the same app, and to who sees every app', async () => {
    const [kim, lee, ofBlog] = await Promise.all(
      [{ name: 'kim' }, { name: 'lee' }, { name: 'blogger', app: 'blog' }].map(async (over) => {
        const one = client()
        await one.signIn((await createOperator({ app: 'shop', ...over })).token)
        return one
      }),
    )
    const to = newPhone()
    const address = addressIn((await find(to, kim)).text)
    for (const colleague of [lee, anna]) {
      expect((await colleague?.get(address))?.text).toContain(`<h1>${maskOf(to)}</h1>`)
    }
    await handedOnTo(ofBlog as Client, address)
    // An empty field means the same recipient. The links stay valid for the same colleagues.
    const again = addressIn((await find('', anna, { of: address.slice(7), ip: '192.0.2.1' })).text)
    expect((await lee?.get(again))?.status).toBe(200)
    await handedOnTo(ofBlog as Client, again)
  })

  test('an operator of every app is led to the one that knows the recipient, refusals alone included', async () => {
    const shop = (await keys.create({ name: 'shop', app: 'shop' })).token
    const to = newPhone()
    await send(to, {}, shop)
    const { text } = await find(to)
    expect(text).toMatch(/app=shop" aria-current="true">shop</)
    expect(text).toContain('Code requested: accepted')
    expect(text).toContain('app=default"')
  })

  test('an operator of one app sees neither the notices, the keys, the operations nor the stories of another', async () => {
    const to = newPhone()
    const { body } = await send(to)
    const address = addressIn((await find(to)).text)
    await anna.submit(`${address}/reset`, {
      app: 'default',
      limits: 'on',
      reason: 'of another app',
    })
    const ofShop = client()
    await ofShop.signIn((await createOperator({ name: 'shopkeeper', app: 'shop' })).token)
    expect((await ofShop.get(`/notices/${body.id}`)).status).toBe(404)
    expect((await ofShop.get(`${address}?app=default`)).status).toBe(404)
    await handedOnTo(ofShop, address)
    await handedOnTo(ofShop, addressIn((await anna.get(`/notices/${body.id}`)).text))
    const form = { app: 'default', limits: 'on', reason: 'x' }
    expect((await ofShop.submit(`${address}/reset`, form)).status).toBe(404)
    expect((await find(to, ofShop)).text).toContain('No code was requested')
    expect((await ofShop.get('/operations')).text).not.toContain('of another app')
    expect((await ofShop.get('/notices')).text).not.toContain(maskOf(to))
    const { text } = await ofShop.get('/keys')
    expect(text).toContain('shopkeeper')
    expect(text).not.toContain('bootstrap')
  })
})
