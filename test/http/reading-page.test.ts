import { expect, test } from 'vitest'
import { startPostern } from '../support/postern.ts'

test('GET /docs: a page that shows openapi.json, made of our own files alone', async () => {
  const postern = await startPostern({ roles: { api: true, worker: false } })
  const page = await postern.get('/docs', { key: null })
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toMatch(/^text\/html/)
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  expect(page.body).not.toMatch(/https?:\/\/|<script>|style=/)
  const files = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file as string)
  expect(files).toHaveLength(5)
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
