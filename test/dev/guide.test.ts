import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import express from 'express'
import { expect, inject, test } from 'vitest'
import { createGuide } from '../../src/dev/guide.ts'
import { releaseLater } from '../support/release.ts'

async function serve(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = mkdtempSync(join(inject('runFolder'), 'guide-'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const app = express().use(createGuide(folder))
  const server = app.use((_, response) => void response.send('the API')).listen(0, '127.0.0.1')
  releaseLater(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('not built: a page at every address of the guide says how to build it', async () => {
  const url = await serve({})
  for (const path of ['/docs/guide/', '/docs/guide', '/docs/guide/start']) {
    const answer = await fetch(`${url}${path}`)
    expect({ path, status: answer.status }).toEqual({ path, status: 404 })
    expect(await answer.text()).toContain('npm run docs')
  }
})

test('an address of bytes that are no text is told so, without a word of where it was found', async () => {
  const built = { 'index.html': 'start', '404.html': 'no such page' }
  const sites: Record<string, string>[] = [{}, built]
  for (const files of sites) {
    const answer = await fetch(`${await serve(files)}/docs/guide/%c0%ae/`)
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
    expect(await answer.text()).not.toContain('node_modules')
  }
})

test('built: pages without their ending, and only the scripts inside the start page may run inside a page', async () => {
  const script = 'document.title = "dark"'
  const url = await serve({
    'index.html': `<script src="/a.js"></script><script id="x">${script}</script>`,
    'start.html': 'how to start',
    '404.html': 'no such page',
  })
  const index = await fetch(`${url}/docs/guide/`)
  const policy = index.headers.get('content-security-policy') ?? ''
  const hash = createHash('sha256').update(script).digest('base64')
  expect(/script-src ([^;]*)/.exec(policy)?.[1]).toBe(`'self' 'sha256-${hash}'`)
  expect(policy).toContain("default-src 'self'")
  expect(await index.text()).toContain(script)
  const start = await fetch(`${url}/docs/guide/start`)
  expect(await start.text()).toBe('how to start')
  const missing = await fetch(`${url}/docs/guide/nothing`)
  expect({ status: missing.status, text: await missing.text() }).toEqual({
    status: 404,
    text: 'no such page',
  })
})

test('everything else goes on to the API', async () => {
  const url = await serve({})
  for (const path of ['/docs', '/docs/', '/v1/captchas', '/']) {
    const answer = await fetch(`${url}${path}`)
    expect(await answer.text()).toBe('the API')
  }
})
