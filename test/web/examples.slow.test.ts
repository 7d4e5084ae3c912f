import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { findFreePort } from '../../src/dev/server-process.ts'
import { launchBrowser, openPage } from '../tools/browser.ts'
import { startPostern } from '../tools/postern.ts'
import { bundleExample, installExamples, servePages, startPlainForm } from './run-example.ts'

const postern = await startPostern()
const browser = await launchBrowser()

const message = (page: Page) => expect.poll(() => page.locator('.postern-message').textContent())

/** Asks for a code and types what came. */
async function confirm(page: Page, to: string): Promise<void> {
  await page.getByLabel('Mobile number').fill(to)
  await page.getByRole('button', { name: 'Send code' }).click()
  await page.getByLabel('Code sent to').fill(await postern.codeFor(to))
  await message(page).toBe('Confirmed.')
}

test('examples/plain-form: from the page to a server that knows whose address it is; a pass of one’s own making is none', async () => {
  const { origin } = await startPlainForm(postern)
  const { page, messages } = await openPage(browser, origin)
  await page.getByLabel('Name').fill('Ann')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await message(page).toBe('Confirm this with a code first.')
  await confirm(page, '+8613800138000')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await expect.poll(() => page.locator('p').textContent()).toBe('Welcome!')
  expect(messages.filter((text) => !text.includes('favicon') && !text.includes('404'))).toEqual([])

  const form = new URLSearchParams({
    'postern-pass': 'a.b.c',
    'postern-channel': 'sms',
    'postern-to': '+8613800138000',
  })
  for (const body of [form, new URLSearchParams()]) {
    const forged = await fetch(`${origin}/signup`, { method: 'POST', body })
    expect(forged.status).toBe(403)
    expect(await forged.text()).toContain('Please confirm')
  }
})

test('examples/plain-form: Postern is away → a sentence for each visitor, and the server lives on', async () => {
  const { origin } = await startPlainForm({
    ...postern,
    url: `http://127.0.0.1:${await findFreePort()}`,
  })
  for (const _ of [1, 2]) {
    const answer = await fetch(`${origin}/signup`, {
      method: 'POST',
      body: new URLSearchParams({}),
    })
    expect(answer.status).toBe(503)
    expect(await answer.text()).toContain('try again in a minute')
  }
  expect((await fetch(origin)).status).toBe(200)
})

test('examples/plain-form without JavaScript says what to do', async () => {
  const { origin } = await startPlainForm(postern)
  const context = await browser.newContext({ javaScriptEnabled: false })
  const page = await context.newPage()
  await page.goto(origin)
  expect(await page.locator('postern-code').innerText()).toContain('switch JavaScript on')
  expect(await page.locator('postern-code noscript').isVisible()).toBe(true)
  await context.close()
})

test('examples/react and examples/vue: the field lives through re-rendering, unmounting and mounting again, and its pass goes with the form', async () => {
  const folder = await installExamples(['react', 'vue'])
  for (const [index, name] of ['react', 'vue'].entries()) {
    const site = await servePages(postern)
    site.serve(await bundleExample(folder, name, postern.url, site.key))
    const { page, messages } = await openPage(browser, site.origin)
    const to = `+861380013801${index}`
    await page.getByLabel('Name').fill('An')
    await page.getByLabel('Mobile number').fill(to)
    await page.getByRole('button', { name: 'Send code' }).click()
    await page.getByLabel('Code sent to').waitFor()
    await page.getByLabel('Code sent to').pressSequentially('1')
    // Every letter renders the form anew.
    await page.getByLabel('Name').fill('Ann')
    expect(await page.getByLabel('Code sent to').inputValue()).toBe('1')
    expect(await page.locator('.postern-field').count()).toBe(1)

    await page.getByRole('button', { name: 'Close' }).click()
    expect(await page.locator('.postern-field').count()).toBe(0)
    await page.getByRole('button', { name: 'Open' }).click()
    expect(await page.locator('.postern-field').count()).toBe(1)
    await page.getByLabel('Name').fill('Ann')
    await page.getByLabel('Code sent to').fill(await postern.codeFor(to))
    await expect
      .poll(() => page.getByRole('status').last().textContent())
      .toBe('Confirmed. One more click.')
    await page.getByRole('button', { name: 'Sign up' }).click()
    await expect.poll(() => page.getByRole('status').last().textContent()).toBe('Welcome, Ann!')
    expect(messages.filter((text) => !/favicon|404|DevTools|development/.test(text))).toEqual([])
  }
})

test('examples/web-view: the app gets the pass, and why a code was refused', async () => {
  const site = await servePages(postern)
  site.serve(site.folder('web-view', { 'https://codes.example': postern.url, 'ppk_…': site.key }))
  const context = await browser.newContext()
  await context.addInitScript(`
    window.told = []
    window.PosternApp = { onMessage: (text) => told.push(['android', JSON.parse(text)]) }
    window.webkit = { messageHandlers: { postern: { postMessage: (message) => told.push(['ios', message]) } } }`)
  const page = await context.newPage()
  await page.goto(site.origin)
  const to = '+8613800138020'
  await page.getByLabel('Mobile number').fill(to)
  await page.getByRole('button', { name: 'Send code' }).click()
  const code = await postern.codeFor(to)
  await page.getByLabel('Code sent to').fill(code === '0000' ? '1111' : '0000')
  await message(page).toContain('2 tries left')
  await page.getByLabel('Code sent to').fill(code)
  await message(page).toBe('Confirmed.')
  const told = (await page.evaluate('told')) as [string, Record<string, unknown>][]
  const refused = { type: 'refused', during: 'check', code: 'code_mismatch' }
  const passed = { type: 'passed', pass: expect.any(String), channel: 'sms', to }
  expect(told).toEqual(
    [refused, passed].flatMap((one) => [
      ['ios', one],
      ['android', one],
    ]),
  )
  const { body } = await postern.post('/v1/passes/verify', { pass: told.at(-1)?.[1].pass })
  expect(body).toMatchObject({ valid: true, scene: 'login' })
  await context.close()
})
