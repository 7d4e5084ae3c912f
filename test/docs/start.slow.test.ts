/** docs/start.md, followed to the letter: its key, its page on another origin, its server, and a person who signs up. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
import { findFreePort } from '../../src/dev/server-process.ts'
import { launchBrowser, openPage } from '../tools/browser.ts'
import { fencesOf } from '../tools/markdown.ts'
import { environmentWithNode } from '../tools/node-versions.ts'
import { startPostern } from '../tools/postern.ts'
import { releaseLater } from '../tools/release.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const run = promisify(execFile)
const fences = fencesOf('docs/start.md')
const commands = fences.filter(({ language, reason }) => language === 'sh' && !reason)

test('the Chinese page has the same code', () => {
  const codeOf = (page: string) =>
    fencesOf(page).map(({ language, file, text }) => ({ language, file, text }))
  expect(codeOf('docs/zh/start.md')).toEqual(codeOf('docs/start.md'))
})

test('from a key to "Welcome!", and a pass of one’s own making is none', async () => {
  const postern = await startPostern()
  const port = await findFreePort()
  // Postern's folder as the demo leaves it.
  const base = mkdtempSync(join(inject('runFolder'), 'start-'))
  const cwd = join(base, 'postern')
  mkdirSync(join(cwd, '.postern'), { recursive: true })
  writeFileSync(join(cwd, '.postern/database-url'), postern.database.url)
  writeFileSync(join(cwd, '.postern/demo-key'), postern.key)
  const here = (text: string) =>
    text
      .replaceAll('http://localhost:3000', postern.url)
      .replaceAll(/(localhost:|listen\()8080/g, `$1${port}`)

  const [makeKeys, readMessages] = commands.map(({ text }) => here(text))
  expect(commands).toHaveLength(2)
  const env = await environmentWithNode(20)
  const shell = (script = '') => run('bash', ['-euo', 'pipefail', '-c', script], { cwd, env })
  await shell(makeKeys?.replace('npm run', npmRun))
  for (const { file, text } of fences) {
    if (file) writeFileSync(join(base, 'my-page', file), here(text))
  }
  const startServer = fences.find(({ text }) => text.includes('node my-server.mjs'))?.text
  const server = spawn('bash', ['-ec', `${startServer?.trim().replace('\nnode', '\nexec node')}`], {
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
    await page.setViewportSize({ width: 560, height: 400 })
    await page.screenshot({ path: `${repositoryRoot}docs/images/start-code-field.png` })
  }
  const { stdout } = await shell(readMessages)
  const [{ text }] = JSON.parse(stdout)
  await page.getByLabel('Code sent to').fill(/\d{4}/.exec(text)?.[0] ?? '')
  await expect.poll(() => page.locator('.postern-message').textContent()).toBe('Confirmed.')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await expect.poll(() => page.locator('p').textContent()).toBe('Welcome!')
  expect(messages.filter((text) => !text.includes('404'))).toEqual([])

  const submit = async (form: Record<string, string>) => {
    const answer = await fetch(origin, { method: 'POST', body: new URLSearchParams(form) })
    return `${answer.status} ${await answer.text()}`
  }
  const forged = {
    'postern-pass': 'a.b.c',
    'postern-channel': 'sms',
    'postern-to': '+8613800138000',
  }
  for (const form of [forged, {}, { ...forged, 'postern-to': 'nobody' }])
    expect(await submit(form)).toBe('200 <p>Please confirm your number first.</p>')

  // Postern is away: the visitor gets a sentence, and so does the next one.
  await postern.stop()
  for (const _ of [1, 2]) expect(await submit(forged)).toMatch(/^503 <p>We can not check that now/)
  expect((await fetch(origin)).status).toBe(200)
  expect(server.exitCode).toBe(null)
})

/** The reader is in the folder of Postern. */
const npmRun = `npm --prefix ${repositoryRoot} run --silent`
