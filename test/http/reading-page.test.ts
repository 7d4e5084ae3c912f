import { gunzipSync } from 'node:zlib'
import express from 'express'
import { request } from 'undici'
import { expect, test } from 'vitest'
import { createReadingPage } from '../../src/http/reading-page.ts'
import { listen } from '../tools/listen.ts'
import { startPostern } from '../tools/postern.ts'
import { rawHttp } from './raw-http.ts'

test('GET /docs: a page that shows openapi.json, from files of the package only', async () => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const page = await postern.get('/docs', { key: null })
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toMatch(/^text\/html/)
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  expect(page.body).not.toMatch(/https?:\/\/|<script>|style=/)
  const files = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file as string)
  expect(files).toHaveLength(8)
  for (const file of files) {
    const { pathname } = new URL(file, `${postern.url}/`)
    expect({ pathname, status: (await postern.get(pathname, { key: null })).status }).toEqual({
      pathname,
      status: 200,
    })
  }
  const start = await postern.get('/docs/start.js', { key: null })
  expect(start.body).toContain('../openapi.json')
  expect((await postern.get('/docs/package.json', { key: null })).status).toBe(404)
  expect((await postern.get('/docs/..%2fpackage.json', { key: null })).status).toBe(404)
})

test('behind a proxy that takes a path away: every file of the page lies below that path', async () => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const below = 'https://shop.example/otp'
  for (const path of ['/docs', '/docs/', '/docs?a=/', '/docs/?a']) {
    const { body } = await postern.get(path, { key: null })
    const files = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(
      ([, file]) => new URL(file as string, below + path).href,
    )
    expect(files).toHaveLength(8)
    for (const file of files) {
      expect(file.startsWith(`${below}/`), `${path}: ${file}`).toBe(true)
      expect((await postern.get(file.slice(below.length), { key: null })).status, file).toBe(200)
    }
  }
})

test.each([
  ['if-match', '"x"'],
  ['if-unmodified-since', 'Mon, 01 Jan 1999 00:00:00 GMT'],
  ['range', 'bytes=99999999-'],
])(
  'GET /docs/swagger-ui.css with %s: the whole file, and no page of the framework',
  async (name, value) => {
    const postern = await startPostern({ roles: { api: true, worker: false } })
    const reply = await fetch(`${postern.url}/docs/swagger-ui.css`, { headers: { [name]: value } })
    expect({ status: reply.status, type: reply.headers.get('content-type') }).toEqual({
      status: 200,
      type: 'text/css; charset=utf-8',
    })
    // Read to its end, so that its connection does not stay open.
    expect((await reply.text()).length).toBeGreaterThan(10_000)
  },
)

test('mounted below a parameter: the caller’s text is escaped in the page', async () => {
  const app = express().use('/a/:name', createReadingPage())
  const { body } = await rawHttp(
    await listen(app),
    'GET /a/"><b>x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  )
  expect(body).toContain('./&#34;&#62;&#60;b&#62;x/')
  expect(body).not.toContain('<b>')
})

test.each([
  ['/docs/page.css', 'text/css; charset=utf-8'],
  ['/docs/start.js', 'text/javascript; charset=utf-8'],
  ['/openapi.json', 'application/json; charset=utf-8'],
])('%s is compressed for clients that accept it, and the same for others', async (path, type) => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const get = async (encoding: string) => {
    const { headers, body } = await request(`${postern.url}${path}`, {
      headers: { 'accept-encoding': encoding },
    })
    const bytes = Buffer.from(await body.arrayBuffer())
    expect(Number(headers['content-length'])).toBe(bytes.length)
    expect(headers['content-type']).toBe(type)
    expect(headers.vary).toContain('Accept-Encoding')
    return { encoding: headers['content-encoding'], bytes }
  }
  const plain = await get('identity')
  expect(plain.encoding).toBeUndefined()
  for (const refused of ['gzip;q=0', 'br', 'gzip; q=0.0, br'])
    expect((await get(refused)).bytes.equals(plain.bytes), refused).toBe(true)
  for (const accepted of ['gzip', 'br, GZIP;q=0.5', 'gzip;q=0.01']) {
    const { encoding, bytes } = await get(accepted)
    expect({ accepted, encoding }).toEqual({ accepted, encoding: 'gzip' })
    expect(gunzipSync(bytes).equals(plain.bytes)).toBe(true)
    expect(bytes.length).toBeLessThan(plain.bytes.length)
  }
})

test.each(['/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js'])(
  '%s is large, so every client gets it compressed, also one that names no encoding or refuses it',
  async (path) => {
    const postern = await startPostern({ roles: { api: true, worker: false } })
    for (const encoding of [undefined, 'identity', 'gzip;q=0', 'gzip']) {
      const { headers, body } = await request(`${postern.url}${path}`, {
        headers: encoding ? { 'accept-encoding': encoding } : {},
      })
      const bytes = Buffer.from(await body.arrayBuffer())
      expect(headers['content-encoding'], encoding).toBe('gzip')
      expect(gunzipSync(bytes).length).toBeGreaterThan(3 * bytes.length)
    }
  },
)
