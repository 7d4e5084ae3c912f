import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { launchBrowser, openPage } from '../tools/browser.ts'
import { startPostern } from '../tools/postern.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { bundleExample, installExamples, servePages, startPlainForm } from './run-example.ts'

const postern = await startPostern()
const browser = await launchBrowser()

const message = (page: Page) => expect.poll(() => page.locator('.postern-message').textContent())

test('examples/plain-form: without a code the form stays', async () => {
  const { origin } = await startPlainForm(postern)
  const { page } = await openPage(browser, origin)
  await page.getByLabel('Name').fill('Ann')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await message(page).toBe('Confirm this with a code first.')
})

test('examples/plain-form without JavaScript shows what to do', async () => {
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
    // Every letter renders the form again.
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

test('examples/react in TypeScript: its declaration knows the attributes, and what an event has', async () => {
  const folder = join(await installExamples(['react'], { '@types/react': '^19.2.0' }), 'react')
  const tsc = join(repositoryRoot, 'node_modules/.bin/tsc')
  const flags = '--noEmit --strict --skipLibCheck --jsx react-jsx --module esnext'.split(' ')
  const errorsOf = async (attributes: string) => {
    writeFileSync(join(folder, 'page.tsx'), `export const field = <postern-code ${attributes} />`)
    const files = ['--moduleResolution', 'bundler', 'postern-code.d.ts', 'page.tsx']
    const compiling = promisify(execFile)(tsc, [...flags, ...files], { cwd: folder })
    return (await compiling.catch((error: { stdout: string }) => error)).stdout
  }
  const needed = 'publishable-key="ppk_…" src="https://codes.example"'
  expect(
    await errorsOf(
      `${needed} scene="login" required onpassed={({ detail }) => detail.pass.length}`,
    ),
  ).toBe('')
  expect(await errorsOf('src="https://codes.example"')).toContain("'publishable-key'")
  expect(await errorsOf(`${needed} onpassed={({ detail }) => detail.code}`)).toContain("'code'")
})

test('examples/web-view: the app gets the pass, and why a code was refused', async () => {
  const site = await servePages(postern)
  site.serve(site.folder('web-view'))
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

test('examples/own-field: a code is asked for, refused too early, mistyped, and its pass is good', async () => {
  const site = await servePages(postern)
  site.serve(site.folder('own-field'))
  const { page } = await openPage(browser, site.origin)
  const to = '+8613800138030'
  await page.getByLabel('Mobile number').fill(to)
  await page.getByRole('button', { name: 'Send code' }).click()
  await expect
    .poll(() => page.getByRole('status').textContent())
    .toMatch(/^Sent\. A new code can be had at /)
  await page.getByRole('button', { name: 'Send code' }).click()
  await expect.poll(() => page.getByRole('status').textContent()).toMatch(/^Please wait \d+ s\.$/)
  const code = await postern.codeFor(to)
  for (const [typed, answer] of [
    [code === '0000' ? '1111' : '0000', /^The code is wrong/],
    [code, /^Confirmed by a pass of \d{3} characters/],
  ] as const) {
    await page.getByLabel('Code', { exact: true }).fill(typed)
    await page.getByRole('button', { name: 'Log in' }).click()
    await expect.poll(() => page.getByRole('status').textContent()).toMatch(answer)
  }
})

test('examples/own-field: a challenge that a rule asks for is solved', async () => {
  const rule = { name: 'always', key: '{ip}', sliding: '1 per 1h', mode: 'challenge' }
  const asking = await startPostern({ policyFile: { browser: { rules: [rule] } } })
  const site = await servePages(asking)
  site.serve(site.folder('own-field'))
  const { page } = await openPage(browser, site.origin)
  for (const to of ['+8613800138031', '+8613800138032']) {
    await page.getByLabel('Mobile number').fill(to)
    await page.getByRole('button', { name: 'Send code' }).click()
    await asking.codeFor(to)
  }
})

test('examples/looks: the page sets the colours and the words, by light and in the dark', async () => {
  const site = await servePages(postern)
  site.serve(site.folder('looks'))
  const { page } = await openPage(browser, site.origin)
  await page.getByLabel('Handynummer').waitFor()
  await page.getByRole('button', { name: 'Code anfordern' }).waitFor()
  const styleBy = async (colorScheme: 'light' | 'dark') => {
    await page.emulateMedia({ colorScheme })
    return page.evaluate(`(() => {
      const { backgroundColor, color, borderRadius } = getComputedStyle(document.querySelector('.postern-button'))
      return { backgroundColor, color, borderRadius }
    })()`)
  }
  await expect
    .poll(() => styleBy('light'))
    .toEqual({
      backgroundColor: 'rgb(10, 125, 79)',
      color: 'rgb(255, 255, 255)',
      borderRadius: '4px',
    })
  await expect
    .poll(() => styleBy('dark'))
    .toEqual({
      backgroundColor: 'rgb(95, 211, 155)',
      color: 'rgb(12, 21, 48)',
      borderRadius: '4px',
    })
})
