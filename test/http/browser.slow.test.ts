/** A real browser lets a page do what docs/http.md promises, and nothing else. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { createKeyStore } from '../../src/access/key-store.ts'
import { parseOrigin } from '../../src/access/origins.ts'
import { launchBrowser, openPage, servePage } from '../tools/browser.ts'
import { databaseAt } from '../tools/database.ts'
import { startPostern } from '../tools/postern.ts'

const postern = await startPostern()
const browser = await launchBrowser()
const { port } = await servePage()
const shop = `http://shop.example:${port}`
const evil = `http://evil.example:${port}`

const database = databaseAt(postern.database.url, 1)
const { token } = await createKeyStore(database).create({
  name: 'page',
  app: 'default',
  kind: 'publishable',
  origins: [shop],
})

interface Call {
  key: string | null
  body: unknown
  headers?: Readonly<Record<string, string>>
}

/** The answer as a script of the page gets it. */
const call = (page: Page, path: string, { key, body, headers = {} }: Call) =>
  page.evaluate(
    async ({ url, key, body, headers }) => {
      try {
        const response = await fetch(url, {
          method: 'POST',
          headers: {
            ...(key === null ? {} : { authorization: `Bearer ${key}` }),
            'content-type': 'application/json',
            ...headers,
          },
          body,
        })
        return {
          status: response.status,
          headers: Object.fromEntries(response.headers),
          body: JSON.parse(await response.text()),
        }
      } catch (error) {
        return { thrown: String(error) }
      }
    },
    { url: postern.url + path, key, body: JSON.stringify(body), headers },
  )

const noticeCount = async () => {
  const { rows } = await postern.database.pool.query('SELECT count(*)::int AS count FROM notice')
  return rows[0].count as number
}

test('a page of a listed origin sends a code and checks it, and reads the text for the person', async () => {
  const { page, messages } = await openPage(browser, shop)
  const body = { channel: 'sms', to: '+8613800138000' }
  const headers = { 'idempotency-key': 'one-click' }
  const sent = await call(page, '/v1/captchas', { key: token, body, headers })
  expect(sent).toMatchObject({
    status: 202,
    headers: {
      location: expect.stringContaining('/v1/notices/'),
      'x-request-id': expect.any(String),
    },
    body: { to: '+8613****8000', codeLength: 4 },
  })
  expect(messages).toEqual([])

  const early = await call(page, '/v1/captchas', { key: token, body })
  expect(early).toMatchObject({
    status: 429,
    headers: { 'retry-after': expect.stringMatching(/^\d+$/), ratelimit: expect.any(String) },
    body: { code: 'limited', retryAfterMs: expect.any(Number) },
  })
  const code = await postern.codeFor(sent.body.id)
  const checked = await call(page, '/v1/captchas/check', { key: token, body: { ...body, code } })
  expect(checked).toMatchObject({ status: 200, body: { verified: true, id: sent.body.id } })
  const again = await call(page, '/v1/captchas/check', { key: token, body: { ...body, code } })
  expect(again).toMatchObject({ status: 410, body: { code: 'code_gone' } })
  const noKey = await call(page, '/v1/captchas', { key: null, body })
  expect(noKey).toMatchObject({ status: 401, body: { code: 'unauthorized' } })
})

test('a page of another origin cannot: the browser reports that its preflight was refused, and nothing is sent', async () => {
  const before = await noticeCount()
  const { page, messages } = await openPage(browser, evil)
  const body = { channel: 'sms', to: '+8613800138001' }
  expect(await call(page, '/v1/captchas', { key: token, body })).toEqual({
    thrown: 'TypeError: Failed to fetch',
  })
  expect(messages[0]).toContain(
    `Access to fetch at '${postern.url}/v1/captchas' from origin '${evil}' has been blocked by CORS policy: ` +
      `Response to preflight request doesn't pass access control check: ` +
      `No 'Access-Control-Allow-Origin' header is present on the requested resource.`,
  )
  expect(await noticeCount()).toBe(before)
})

test('a sandboxed frame of a listed origin, whose origin is null, cannot', async () => {
  const { page, messages } = await openPage(browser, shop)
  const script = `fetch('${postern.url}/v1/captchas', { method: 'POST', body: '{}',
    headers: { authorization: 'Bearer ${token}', 'content-type': 'application/json' } })
    .catch((error) => console.log('thrown ' + error))`
  await page.setContent(
    `<iframe sandbox="allow-scripts" srcdoc="<script>${script}</script>"></iframe>`,
  )
  await expect.poll(() => messages.join('\n')).toContain('thrown TypeError: Failed to fetch')
  expect(messages.join('\n')).toMatch(/from origin 'null' has been blocked by CORS policy/)
})

test('a secret key in a page of a listed origin: the browser keeps every answer from it', async () => {
  const { page, messages } = await openPage(browser, shop)
  const body = { channel: 'sms', to: '+8613800138002' }
  for (const key of [postern.key, 'psk_mistyped']) {
    messages.length = 0
    expect(await call(page, '/v1/captchas', { key, body })).toEqual({
      thrown: 'TypeError: Failed to fetch',
    })
    expect(messages.join('\n')).toContain(
      `from origin '${shop}' has been blocked by CORS policy: ` +
        `No 'Access-Control-Allow-Origin' header is present on the requested resource.`,
    )
  }
})

test('a call that is not for pages is refused before it is sent', async () => {
  const { page, messages } = await openPage(browser, shop)
  const body = { channel: 'sms', to: '+8613800138003', template: 'welcome' }
  expect(await call(page, '/v1/notices', { key: token, body })).toEqual({
    thrown: 'TypeError: Failed to fetch',
  })
  expect(messages.join('\n')).toContain('Response to preflight request doesn')
})

test.each([
  'http://Shop.EXAMPLE',
  'http://bücher.example',
  'http://faß.example',
  'http://购物.example',
  'http://my_shop.example',
  'HTTP://LOCALHOST',
  'http://2130706433',
  'http://127.1',
])('%s: the origin that a key keeps is the one that the browser sends', async (text) => {
  const target = await servePage()
  const { page } = await openPage(browser, `${text}:${port}`)
  await page.evaluate(
    (url) => fetch(url, { method: 'POST', mode: 'no-cors' }).then((response) => response.text()),
    `http://127.0.0.1:${target.port}/`,
  )
  expect(parseOrigin(`${text}:${port}`)).toEqual({ ok: true, origin: target.origins[0] })
})
