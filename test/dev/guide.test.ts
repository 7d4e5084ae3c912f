import { createHash } from 'node:crypto'
import { mkdtempSync, utimesSync, writeFileSync } from 'node:fs'
import { constants, getPriority } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import express from 'express'
import { describe, expect, inject, test } from 'vitest'
import { createGuide, type Guide } from '../../src/dev/guide.ts'
import { startGuideBuild } from '../../src/dev/guide-build.ts'
import { listen } from '../tools/listen.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

type Files = Readonly<Record<string, string>>

const newFolder = () => mkdtempSync(join(inject('runFolder'), 'guide-'))
function write(folder: string, files: Files): void {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}

async function serve(files: Files, guide: Guide = {}): Promise<string> {
  const { folder = newFolder() } = guide
  write(folder, files)
  const app = express().use(createGuide({ ...guide, folder }))
  return listen(app.use((_, response) => void response.send('the API')))
}

test('not built: a page at every address of the guide shows how to build it', async () => {
  const url = await serve({})
  for (const path of ['/docs/guide/', '/docs/guide', '/docs/guide/start']) {
    const answer = await fetch(`${url}${path}`)
    expect({ path, status: answer.status }).toEqual({ path, status: 404 })
    expect(await answer.text()).toContain('npm run docs')
  }
})

test('an address of bytes that are no text is called that, without a path of this machine', async () => {
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

test('built and compressed: browsers that accept gzip get that, others the files as they are', async () => {
  const folder = newFolder()
  const url = await serve(
    {
      'index.html': 'start',
      'start.html': 'how to start',
      'a.js': '1',
      'plain.js': '2',
      'b.png': 'p',
    },
    { folder },
  )
  for (const [name, text] of Object.entries({ 'index.html': 'S', 'start.html': 'H', 'a.js': '3' }))
    writeFileSync(join(folder, `${name}.gz`), gzipSync(text))
  const get = async (path: string, encoding: string) => {
    const answer = await fetch(`${url}/docs/guide/${path}`, {
      headers: { 'accept-encoding': encoding },
    })
    const { headers } = answer
    return [await answer.text(), headers.get('content-encoding'), headers.get('content-type')]
  }
  const html = 'text/html; charset=utf-8'
  const script = 'text/javascript; charset=utf-8'
  expect(await get('', 'gzip')).toEqual(['S', 'gzip', html])
  expect(await get('start', 'gzip')).toEqual(['H', 'gzip', html])
  expect(await get('start.html', 'gzip')).toEqual(['H', 'gzip', html])
  expect(await get('a.js?x=1', 'gzip')).toEqual(['3', 'gzip', script])
  expect(await get('plain.js', 'gzip')).toEqual(['2', null, script])
  expect(await get('b.png', 'gzip')).toEqual(['p', null, 'image/png'])
  expect(await get('', 'identity')).toEqual(['start', null, html])
  expect(await get('a.js', 'br')).toEqual(['1', null, script])
})

test('being built: a page shows it and loads itself again, until the site is there, and each time it is made anew', async () => {
  const folder = newFolder()
  const url = await serve({}, { folder, isBeingBuilt: () => true })
  const waiting = await fetch(`${url}/docs/guide/start`)
  expect(waiting.status).toBe(503)
  expect(waiting.headers.get('retry-after')).toBe('2')
  expect(await waiting.text()).toMatch(/http-equiv="refresh" content="2".*being built/s)

  for (const script of ['1', '2']) {
    const page = `<script>${script}</script>`
    write(folder, { 'index.html': page, '404.html': 'no such page' })
    utimesSync(join(folder, 'index.html'), Number(script), Number(script))
    const built = await fetch(`${url}/docs/guide/`)
    expect(await built.text()).toBe(page)
    const hash = createHash('sha256').update(script).digest('base64')
    expect(built.headers.get('content-security-policy')).toContain(`'sha256-${hash}'`)
    expect((await fetch(`${url}/docs/guide/nothing`)).status).toBe(404)
  }
})

test('everything else goes on to the API', async () => {
  const url = await serve({})
  for (const path of ['/docs', '/docs/', '/v1/captchas', '/']) {
    const answer = await fetch(`${url}${path}`)
    expect(await answer.text()).toBe('the API')
  }
})

describe('the build beside the demo', () => {
  function startBuild(script: string) {
    const folder = newFolder()
    write(folder, { 'build.mjs': script })
    const lines: string[] = []
    const build = startGuideBuild((line) => lines.push(line), join(folder, 'build.mjs'))
    releaseLater(() => build.stop())
    return { build, lines }
  }
  const isOver = ({ isUnderWay }: ReturnType<typeof startGuideBuild>) =>
    eventually(() => !isUnderWay())

  test('it ends well → no word; it fails, however → one line', async () => {
    const good = startBuild('process.exit(process.argv[2] === "--if-changed" ? 0 : 1)')
    const faulty = startBuild('throw new Error("a dead link")')
    const killed = startBuild('process.kill(process.pid, "SIGKILL")')
    for (const { build } of [good, faulty, killed]) await isOver(build)
    expect(good.lines).toEqual([])
    const line = 'The guide could not be built. Run `npm run docs` to see the error.'
    expect([faulty.lines, killed.lines]).toEqual([[line], [line]])
  })

  test('it has the lowest priority, and ends with the demo without a word', async () => {
    const { build, lines } = startBuild('setInterval(() => {}, 1_000)')
    const pid = build.pid as number
    expect(getPriority(pid)).toBe(constants.priority.PRIORITY_LOW)
    // The leader of a group, so Ctrl-C in the demo's terminal does not reach it.
    expect(process.kill(-pid, 0)).toBe(true)
    await build.stop()
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
    expect(lines).toEqual([])
  })
})
