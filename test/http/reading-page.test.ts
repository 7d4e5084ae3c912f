import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { expect, test } from 'vitest'
import { createReadingPage } from '../../src/http/reading-page.ts'
import { startPostern } from '../tools/postern.ts'
import { releaseLater } from '../tools/release.ts'
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
    // To its end, or its connection would stay open.
    expect((await reply.text()).length).toBeGreaterThan(10_000)
  },
)

test('mounted below a parameter: the caller’s text is escaped in the page', async () => {
  const app = express().use('/a/:tenant/docs', createReadingPage())
  const server = app.listen(0, '127.0.0.1')
  releaseLater(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { body } = await rawHttp(
    `http://127.0.0.1:${port}`,
    'GET /a/"><b>x/docs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  )
  expect(body).toContain('/a/&#34;&#62;&#60;b&#62;x/docs/')
  expect(body).not.toContain('<b>')
})
