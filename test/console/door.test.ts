/** Access to the console, and the input that it accepts. */
import { describe, expect, test } from 'vitest'
import type { ApiKey } from '../../src/access/api-keys.ts'
import { createKeyToken } from '../../src/access/key-token.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { languages } from '../../src/base/words.ts'
import { sessionLivesMs } from '../../src/console/sessions.ts'
import { createSignIn, signInPolicies } from '../../src/console/sign-in.ts'
import { createLimiter } from '../../src/limiter/index.ts'
import { eventually } from '../tools/wait.ts'
import { clientOf, openConsole } from './open-console.ts'

const { postern, keys, createOperator, client } = await openConsole({
  roles: { api: true, worker: false },
})
const { adminUrl } = postern
const operator = await createOperator()
const isIn = (text: string) => text.includes('href="/operations"')
const csrfIn = (text: string) => /name="csrf" value="([^"]+)"/.exec(text)?.[1] ?? ''

async function signedIn() {
  const one = client()
  expect(isIn((await one.signIn(operator.token)).text)).toBe(true)
  return one
}

describe('signing in', () => {
  test('an operator key opens the page that was asked for', async () => {
    const reply = await client().post('/login', {
      key: ` ${operator.token}\n`,
      next: '/notices?state=failed',
    })
    expect(reply.status).toBe(303)
    expect(reply.headers.get('location')).toBe('/notices?state=failed')
    const cookie = reply.headers.get('set-cookie')
    expect(cookie).toMatch(/^postern_console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
  })

  describe('by https', () => {
    const origin = `https://${new URL(adminUrl).host}`
    const enter = async () => {
      const one = client()
      const reply = await one.post('/login', { key: operator.token }, { origin })
      return { one, cookie: reply.headers.get('set-cookie') ?? '' }
    }
    const pageWith = (cookie: string) =>
      fetch(`${adminUrl}/`, {
        headers: { cookie, 'x-forwarded-proto': 'https' },
        redirect: 'manual',
      })

    test('the cookie is for https and this very host alone, and opens the pages', async () => {
      const { one, cookie } = await enter()
      expect(cookie).toMatch(
        /^__Host-postern_console=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
      )
      expect(isIn((await one.get('/')).text)).toBe(true)
      expect((await pageWith(one.cookie())).status).toBe(200)
    })

    test('a session under the plain name, which a neighbouring host could have set, opens nothing', async () => {
      const [, token] = (await enter()).one.cookie().split('=')
      expect((await pageWith(`postern_console=${token}`)).status).toBe(303)
      const own = (await enter()).one.cookie()
      expect((await pageWith(`postern_console=${'x'.repeat(43)}; ${own}`)).status).toBe(200)
    })

    test('signing out ends it, by a cookie that a browser takes', async () => {
      const { one } = await enter()
      const csrf = csrfIn((await one.get('/')).text)
      const reply = await one.post('/sign-out', { csrf }, { origin })
      expect(reply.headers.get('set-cookie')).toMatch(
        /^__Host-postern_console=; Path=\/; HttpOnly; SameSite=Strict; Secure; Max-Age=0$/,
      )
      expect(isIn((await one.get('/')).text)).toBe(false)
    })
  })

  test.each([
    ['https://evil.example/'],
    ['//evil.example'],
    ['/\\evil.example'],
    ['javascript:alert(1)'],
    ['/%0d%0aSet-Cookie:x'.replace('%0d%0a', '\r\n')],
  ])('where %j should follow, the first page does: no open redirect', async (next) => {
    const reply = await client().post('/login', { key: operator.token, next })
    expect(reply.headers.get('location')).toBe('/')
  })

  test('a secret key, a publishable one, a revoked one, a made-up one and none: 401 with the reason, no cookie', async () => {
    const publishable = { kind: 'publishable', origins: ['https://shop.example'] } as const
    const other = await createOperator()
    await keys.revoke(other.id)
    for (const [key, says] of [
      [postern.key, 'is for the API'],
      [(await createOperator({ ...publishable, app: 'shop' })).token, 'is for the API'],
      [other.token, 'does not exist'],
      ['pok_made_up', 'does not exist'],
      ['', 'does not exist'],
    ] as const) {
      const reply = await client().post('/login', { key })
      expect(reply.status).toBe(401)
      expect(reply.text).toContain(says)
      expect(reply.headers.get('set-cookie')).toBe(null)
      if (key) expect(reply.text).not.toContain(key)
    }
  })

  test('from another origin, or from none: 403, though the key is right', async () => {
    for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }, {}]) {
      const reply = await client().post(
        '/login',
        { key: operator.token },
        headers as Record<string, string>,
      )
      expect(reply.status).toBe(403)
      expect(reply.headers.get('set-cookie')).toBe(null)
    }
  })
})

describe('a session', () => {
  test('is a hash in Redis with an end, and nothing in Redis opens the console', async () => {
    const one = await signedIn()
    const token = one.cookie().split('=')[1] as string
    const { client: redis, prefix } = postern.redis
    const found = await redis.keys(`${prefix}console:session:*`)
    expect(found.length).toBeGreaterThan(0)
    expect(found.join()).not.toContain(token)
    const lives = await redis.pttl(found[0] as string)
    expect(lives).toBeGreaterThan(sessionLivesMs - 60_000)
    expect(lives).toBeLessThanOrEqual(sessionLivesMs)
  })

  test('without one every page leads to the door and back, and shows nothing', async () => {
    for (const path of ['/', '/notices?state=failed', '/operations', '/story/abc']) {
      const response = await fetch(adminUrl + path, { redirect: 'manual' })
      expect(response.status).toBe(303)
      expect(response.headers.get('location')).toBe(`/login?${new URLSearchParams({ next: path })}`)
      expect(await response.text()).not.toContain('nav')
    }
  })

  test('ends with signing out: the cookie opens nothing any more', async () => {
    const one = await signedIn()
    const cookie = one.cookie()
    await one.submit('/sign-out', {})
    const response = await fetch(`${adminUrl}/`, { headers: { cookie }, redirect: 'manual' })
    expect(response.status).toBe(303)
  })

  test('ends everywhere when its operator wants it, and no colleague’s with it; the key opens new ones', async () => {
    const colleague = client()
    await colleague.signIn((await createOperator()).token)
    const [here, there] = [await signedIn(), await signedIn()]
    expect((await here.get('/keys')).text).toContain('name="everywhere"')
    await here.submit('/sign-out', { everywhere: 'yes' })
    for (const ended of [here, there]) expect(isIn((await ended.get('/')).text)).toBe(false)
    expect(isIn((await colleague.get('/')).text)).toBe(true)
    const again = await signedIn()
    expect(isIn((await again.get('/')).text)).toBe(true)
    expect(isIn((await there.get('/')).text)).toBe(false)
    // The record of ended sessions must live longer than they do. Otherwise they would be valid again.
    const { client: redis, prefix } = postern.redis
    const lives = await redis.pttl(`${prefix}console:generation:${operator.id}`)
    expect(lives).toBeGreaterThan(sessionLivesMs)
  })

  test('of a revoked key reads and does nothing on any page', async () => {
    const short = await createOperator()
    const one = client()
    await one.signIn(short.token)
    const csrf = csrfIn((await one.get('/')).text)
    await keys.revoke(short.id)
    const cookie = one.cookie()
    const reads = [
      '/',
      '/search',
      '/story/abc',
      '/notices',
      '/delivery',
      '/rules',
      '/keys',
      '/events',
      '/operations',
    ]
    const asks = [
      ...reads.map((path) => ({ path, init: {} })),
      ...['/search', '/story/abc/reset', '/story/abc/reveal'].map((path) => {
        return {
          path,
          init: { method: 'POST', body: new URLSearchParams({ csrf, q: 'a@b.test' }) },
        }
      }),
    ]
    for (const { path, init } of asks) {
      const headers = { cookie, origin: adminUrl }
      const response = await fetch(adminUrl + path, { ...init, headers, redirect: 'manual' })
      expect(response.status, path).toBe(303)
      expect(response.headers.get('location'), path).toMatch(/^\/login\?next=/)
      expect(await response.text(), path).not.toContain('<nav')
    }
    const everywhere = await one.post('/sign-out', { csrf, everywhere: 'yes' })
    expect(everywhere.status).toBe(403)
  })

  test('signing in again ends the one before', async () => {
    const one = await signedIn()
    const before = one.cookie()
    await one.signIn(operator.token)
    expect(one.cookie()).not.toBe(before)
    const response = await fetch(`${adminUrl}/`, {
      headers: { cookie: before },
      redirect: 'manual',
    })
    expect(response.status).toBe(303)
  })
})

describe('a form', () => {
  test.each(['/search', '/story/abc/reset', '/story/abc/reveal', '/sign-out'])(
    '%s without its token, with another’s, or from another origin: 403',
    async (path) => {
      const one = await signedIn()
      const csrf = csrfIn((await one.get('/')).text)
      const foreign = csrfIn((await (await signedIn()).get('/')).text)
      expect(csrf).not.toBe(foreign)
      expect((await one.post(path, {})).status).toBe(403)
      expect((await one.post(path, { csrf: foreign, everywhere: 'yes' })).status).toBe(403)
      for (const origin of ['https://evil.example', 'null', adminUrl.replace(/\d+$/, '1')]) {
        expect((await one.post(path, { csrf }, { origin })).status).toBe(403)
      }
      expect((await one.post(path, { csrf }, {})).status).toBe(403)
      // None of these requests ended the session.
      expect(isIn((await one.get('/')).text)).toBe(true)
    },
  )

  test('that is too large or broken: 400, in words', async () => {
    const one = await signedIn()
    const reply = await one.post('/search', { q: 'x'.repeat(20_000) })
    expect(reply.status).toBe(400)
    expect(reply.text).toContain('Invalid request')
  })
})

test('pages are not kept, not framed, and run only the file of the console; style and script are kept for ever', async () => {
  const one = await signedIn()
  const { headers, text } = await one.get('/')
  expect(headers.get('cache-control')).toBe('no-store')
  const policy = headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toContain('unsafe')
  expect(text).not.toMatch(/<script(?! type="module" src=)| style="| on\w+="/)
  const [style = ''] = /\/assets\/\w+\/console\.css/.exec(text) ?? []
  const response = await fetch(adminUrl + style)
  expect(response.headers.get('cache-control')).toContain('immutable')
  expect(response.headers.get('content-type')).toBe('text/css; charset=utf-8')
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(response.headers.get('vary')).toContain('Accept-Encoding')
  const morph = await fetch(adminUrl + style.replace('console.css', 'idiomorph.js'))
  expect(await morph.text()).toContain('Idiomorph')
  for (const path of [style.replace('console.css', 'package.json'), '/assets/0/console.css']) {
    expect((await fetch(adminUrl + path, { redirect: 'manual' })).status).toBe(404)
  }
})

test('the language of the browser, then the chosen one; each page offers all others by their own names', async () => {
  const one = client()
  const liked = await one.get('/login', { 'accept-language': 'zh-CN,zh;q=0.9' })
  expect(liked.text).toContain('操作员密钥')
  expect(liked.text).toContain('<html lang="zh-CN">')
  const link = `${adminUrl}/login?next=%2Fkeys&language=zh`
  const chosen = await fetch(link, { redirect: 'manual' })
  expect(chosen.headers.get('set-cookie')).toMatch(
    /^postern_language=zh; Path=\/; HttpOnly; SameSite=Strict/,
  )
  // Without the choice: a page that refreshes itself does not choose again.
  expect(chosen.headers.get('location')).toBe('/login?next=%2Fkeys')
  expect((await one.get('/login?language=zh')).text).toContain('操作员密钥')
  expect((await one.get('/login?language=xx')).text).toContain('操作员密钥')
  const english = await one.get('/login?language=en')
  expect(english.text).toContain('Operator key')
  const offered = [...english.text.matchAll(/language=(\w+)" lang="([\w-]+)"[^>]*>([^<]+)/g)]
  const links = offered.map(([, ...link]) => link)
  expect(links).toContainEqual(['de', 'de', 'Deutsch'])
  expect(links).toContainEqual(['zh', 'zh-CN', '中文'])
  expect(links.length).toBe(languages.length - 1)
})

test('an address that leads elsewhere: 404, and no link of it does', async () => {
  const response = await fetch(`${adminUrl}//evil.example/x`)
  expect(response.status).toBe(404)
  expect(await response.text()).not.toContain('href="//')
})

// The last test, because this machine's address stays locked.
describe('guessing', () => {
  const outcomes = async () => {
    const text = await (await fetch(`${adminUrl}/metrics`)).text()
    const lines = text.matchAll(/^postern_console_sign_ins_total\{outcome="(\w+)".*\} (\d+)$/gm)
    return Object.fromEntries([...lines].map(([, outcome, count]) => [outcome, Number(count)]))
  }

  test('ten wrong keys from one address: 429 with Retry-After for more of them; who is in stays in', async () => {
    const inside = await signedIn()
    const before = await outcomes()
    const attacker = clientOf(postern)
    const refused = await eventually(async () => {
      const reply = await attacker.post('/login', { key: createKeyToken('operator') })
      return reply.status === 429 && reply
    })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(60)
    expect(refused.text).toContain('Too many wrong keys')
    expect(isIn((await inside.get('/')).text)).toBe(true)
    const after = await outcomes()
    expect(Object.keys(after).sort()).toEqual(['not_operator', 'ok', 'wait', 'wrong'])
    expect(after.wait).toBeGreaterThan(before.wait ?? Number.NaN)
    expect(after.wrong).toBeGreaterThan(before.wrong ?? Number.NaN)
  })

  test('a right key opens from an address that is locked: behind a proxy all come from one', async () => {
    expect((await client().post('/login', { key: 'pok_wrong' })).status).toBe(429)
    expect(isIn((await client().signIn(operator.token)).text)).toBe(true)
  })
})

test('a hundred addresses that try wrong keys do not shut the door', async () => {
  const { limiter, tried, signIn } = doorOf(async (token) => (token === 'right' ? rightKey : null))
  for (let n = 0; n < 150; n++) {
    expect(await signIn('wrong', `192.0.2.${n}`)).toEqual({ kind: 'wrong' })
  }
  expect(await signIn('right', '198.51.100.1')).toEqual({ kind: 'ok', key: rightKey })
  expect(tried.filter((one) => one === 'wrong')).toHaveLength(150)
  expect(tried.at(-1)).toBe('ok')
  await limiter.close()
})

test('what could not be looked up is not counted as a try', async () => {
  const { limiter, tried, signIn } = doorOf(async () => {
    throw new Unavailable('postgresql', undefined)
  })
  for (let n = 0; n < 12; n++)
    await expect(signIn('any', '203.0.113.1')).rejects.toThrow(Unavailable)
  expect(tried).toEqual([])
  const [state] = await limiter.peek('signIn', { ip: '203.0.113.1' }, 'address')
  expect(state?.used).toBe(0)
  await limiter.close()
})

const rightKey: ApiKey = { id: 'a', app: '*', kind: 'operator', origins: [] }

function doorOf(authenticate: (token: string) => Promise<ApiKey | null>) {
  const limiter = createLimiter({ policies: signInPolicies })
  const tried: string[] = []
  const signIn = createSignIn({ limiter, authenticate, onTried: (outcome) => tried.push(outcome) })
  return { limiter, tried, signIn }
}
