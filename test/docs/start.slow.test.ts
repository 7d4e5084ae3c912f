/** docs/start.md, followed to the letter: its key, its page on another origin, its server, and a person who signs up. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
import { findFreePort } from '../../src/dev/server-process.ts'
import { launchBrowser, openPage } from '../support/browser.ts'
import { fencesOf } from '../support/markdown.ts'
import { startPostern } from '../support/postern.ts'
import { releaseLater } from '../support/release.ts'
import { repositoryRoot } from '../support/source-files.ts'

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
  // As the demo leaves it; the reader's files lie beside it.
  const folder = mkdtempSync(join(inject('runFolder'), 'start-'))
  mkdirSync(join(folder, '.postern'))
  writeFileSync(join(folder, '.postern/database-url'), postern.database.url)
  writeFileSync(join(folder, '.postern/demo-key'), postern.key)
  const here = (text: string) =>
    text
      .replaceAll('http://localhost:3000', postern.url)
      .replaceAll(/(localhost:|listen\()8080/g, `$1${port}`)

  const [makeKey, readMessages] = commands.map(({ text }) => here(text))
  expect(commands).toHaveLength(2)
  await run('bash', ['-euo', 'pipefail', '-c', makeKey?.replace('npm run', npmRun) ?? ''], {
    cwd: folder,
  })
  for (const { file, text } of fences) if (file) writeFileSync(join(folder, file), here(text))
  const server = spawn(process.execPath, ['my-server.mjs'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
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
  const { stdout } = await run('bash', ['-c', readMessages ?? ''], { cwd: folder })
  const [{ text }] = JSON.parse(stdout)
  await page.getByLabel('Code sent to').fill(/\d{4}/.exec(text)?.[0] ?? '')
  await expect.poll(() => page.locator('.postern-message').textContent()).toBe('Confirmed.')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await expect.poll(() => page.locator('p').textContent()).toBe('Welcome!')
  expect(messages.filter((text) => !text.includes('404'))).toEqual([])

  const forged = await fetch(origin, {
    method: 'POST',
    body: new URLSearchParams({
      'postern-pass': 'a.b.c',
      'postern-channel': 'sms',
      'postern-to': '+8613800138000',
    }),
  })
  expect(await forged.text()).toContain('Please confirm')
})

/** The reader is in the folder of Postern. */
const npmRun = `npm --prefix ${repositoryRoot} run --silent`
