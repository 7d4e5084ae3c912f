/**
 * docs/start.md, followed word by word: its keys, its page on another origin, its server, and a person who signs up.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
import { findFreePort } from '../../src/dev/server-process.ts'
import { launchBrowser, openPage } from '../tools/browser.ts'
import { fencesOf } from '../tools/markdown.ts'
import { environmentWithNode } from '../tools/node-versions.ts'
import { passFor } from '../tools/pass.ts'
import { startPostern } from '../tools/postern.ts'
import { releaseLater } from '../tools/release.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const run = promisify(execFile)
const commands = fencesOf('docs/start.md').filter(({ language }) => language === 'sh')

test('examples/plain-form as docs/start.md runs it: from a key to "Welcome!", and a pass of one’s own making is none', async () => {
  const postern = await startPostern()
  const port = await findFreePort()
  // The folder of Postern, as the demo leaves it.
  const base = mkdtempSync(join(inject('runFolder'), 'start-'))
  const cwd = join(base, 'postern')
  mkdirSync(join(cwd, '.postern'), { recursive: true })
  writeFileSync(join(cwd, '.postern/database-url'), postern.database.url)
  writeFileSync(join(cwd, '.postern/demo-key'), postern.key)
  cpSync(join(repositoryRoot, 'examples'), join(cwd, 'examples'), { recursive: true })

  expect(commands).toHaveLength(4)
  const [, prepare = '', serve = '', readMessages = ''] = commands.map(({ text }) =>
    text
      .replaceAll('http://localhost:3000', postern.url)
      .replaceAll('localhost:8080', `localhost:${port}`)
      // Its folder here has no packages.
      .replace('npm run', `npm --prefix ${repositoryRoot} run`),
  )
  const settings = { PORT: String(port), POSTERN_URL: postern.url }
  const env = { ...(await environmentWithNode(20)), ...settings }
  const script = `${prepare}${serve.replace(/^node/m, 'exec node')}`
  const server = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  releaseLater(() => {
    server.kill()
    return once(server, 'exit')
  })
  await once(server.stdout, 'data')

  const origin = `http://localhost:${port}`
  const { page, messages } = await openPage(await launchBrowser(), origin)
  await page.getByLabel('Name').fill('Ann')
  await page.getByLabel('Mobile number').fill('+8613800138000')
  await page.getByRole('button', { name: 'Send code' }).click()
  await postern.codeFor('+8613800138000')
  await page.getByLabel('Code sent to').waitFor()
  if (process.env.DOCS_IMAGES) {
    await page.setViewportSize({ width: 560, height: 440 })
    await page.screenshot({ path: `${repositoryRoot}docs/images/start-code-field.png` })
  }
  const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', readMessages], { cwd, env })
  const [{ text }] = JSON.parse(stdout)
  await page.getByLabel('Code sent to').fill(/\d{4}/.exec(text)?.[0] ?? '')
  await expect.poll(() => page.locator('.postern-message').textContent()).toBe('Confirmed.')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await expect.poll(() => page.locator('p').textContent()).toBe('Welcome!')
  expect(messages.filter((text) => !/favicon|404/.test(text))).toEqual([])

  const submit = async (form: Record<string, string>) => {
    const body = new URLSearchParams(form)
    const answer = await fetch(`${origin}/signup`, { method: 'POST', body })
    return `${answer.status} ${/<p>(.*)<\/p>/.exec(await answer.text())?.[1]}`
  }
  const forged = {
    'postern-pass': 'a.b.c',
    'postern-channel': 'sms',
    'postern-to': '+8613800138000',
  }
  const otherScene = { 'postern-pass': await passFor(postern, '+8613800138001', 'login') }
  const otherNumber = { 'postern-pass': await passFor(postern, '+8613800138002', 'signup') }
  for (const form of [
    forged,
    {},
    { ...forged, 'postern-to': 'nobody' },
    { ...forged, ...otherScene, 'postern-to': '+8613800138001' },
    { ...forged, ...otherNumber },
  ])
    expect(await submit(form)).toBe('403 Please confirm your number or address first.')

  // Postern is away: this visitor gets a sentence, and the next one gets it too.
  await postern.stop()
  for (const _ of [1, 2]) expect(await submit(forged)).toMatch(/^503 We cannot check that now/)
  expect((await fetch(origin)).status).toBe(200)
  expect(server.exitCode).toBe(null)
})
