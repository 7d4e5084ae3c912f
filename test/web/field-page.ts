import { readFileSync } from 'node:fs'
import axeCore from 'axe-core'
import type { Browser, BrowserContextOptions, Page, Route } from 'playwright-core'
import { expect } from 'vitest'
import { launchBrowser } from '../tools/browser.ts'
import { textOf } from '../tools/markdown.ts'
import { noLimits, type Postern, startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { closeLater } from '../tools/release.ts'

/** The page reserves the field's room as in docs/code-field.md. */
export const reservedRoom = `<style>${textOf('examples/plain-form/page.css#room')}</style>`

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

/** The origin of the API, which serves the field. */
export const scriptPath = `/browser/postern-code.${version}.js`

export interface FieldOptions {
  /** Attributes of the element, besides `key` and `src`. */
  attributes?: string
  /** HTML in place of the element. `{field}` stands for the element. */
  body?: string
  lang?: string
  head?: string
  context?: BrowserContextOptions
}

/** A page with a form and the field in it. `key` allows its origin. */
export function htmlOf(postern: Postern, key: string, options: FieldOptions = {}): string {
  const { attributes = '', lang = 'en', head = '', body = '{field}' } = options
  const field = `<postern-code key="${key}" src="${postern.url}" scene="signup" ${attributes}><noscript>Switch JavaScript on to get a code.</noscript></postern-code>`
  return `<!doctype html>
<html lang="${lang}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sign up</title>
<style>body { margin: 0; font: 16px/1.5 system-ui, sans-serif; background: Canvas; color: CanvasText }
main { max-width: 34rem; margin: 0 auto; padding: 16px }</style>
<script type="module" src="${postern.url}${scriptPath}" crossorigin></script>
<script>
  window.seen = []
  for (const type of ['sent', 'passed', 'refused'])
    addEventListener(type, ({ detail }) => seen.push({ type, ...detail }))
</script>
${head}
</head>
<body><main><h1>Sign up</h1><form method="post" action="/submitted">${body.replace('{field}', field)}</form></main></body>
</html>`
}

/** The same page at the API's own origin. */
export async function openField(
  browser: Browser,
  postern: Postern,
  options: FieldOptions = {},
): Promise<Page> {
  const origin = new URL(postern.url).origin
  const html = htmlOf(
    postern,
    await publishableKey(postern.database, { origins: [origin] }),
    options,
  )
  const context = closeLater(await browser.newContext(options.context))
  const page = await context.newPage()
  await page.route(`${origin}/page`, (route) =>
    route.fulfill({ contentType: 'text/html', body: html }),
  )
  await page.goto(`${origin}/page`)
  return page
}

/** A browser and a service, by default with one code a minute for a recipient, until the file ends. */
export async function startField(captcha: object[] = [oneAMinute]) {
  const browser = await launchBrowser()
  const postern = await startPostern({ policyFile: { policies: { ...noLimits, captcha } } })
  return {
    browser,
    postern,
    open: (options?: FieldOptions) => openField(browser, postern, options),
    /** Sends a code there and returns it. */
    async sendTo(page: Page, to: string): Promise<string> {
      await ask(page, to)
      await expect.poll(() => partsOf(page).code.isVisible()).toBe(true)
      const { id } = (await page.evaluate('seen.at(-1)')) as { id: string }
      return postern.codeFor(id)
    },
  }
}

const oneAMinute = { name: 'recipient', key: '{channel}:{to}', sliding: '1 per 60s' }

/** Asks for a code by the button. */
export async function ask(page: Page, to: string): Promise<void> {
  await partsOf(page).address.fill(to)
  await partsOf(page).send.click()
}

/** Types the right code. */
export async function typeRight(page: Page, code: string): Promise<void> {
  await partsOf(page).code.fill(code)
  await said(page).toBe('Confirmed.')
}

export const wrongFor = (code: string) => (code === '0000' ? '1111' : '0000')

export const partsOf = (page: Page) => ({
  address: page.locator('.postern-input'),
  code: page.locator('.postern-code'),
  send: page.locator('.postern-button'),
  again: page.locator('.postern-again'),
  message: page.locator('.postern-message'),
  links: page.locator('.postern-link:not(.postern-again):visible'),
})

/** The message of the field. */
export const said = (page: Page): ReturnType<typeof expect.poll<string | null>> =>
  expect.poll(() => partsOf(page).message.textContent())

/** Records every answer of the service to one kind of request. */
export const answerWith =
  (status: number, body: unknown, headers: Record<string, string> = {}) =>
  (route: Route) =>
    route.fulfill({
      status,
      contentType: 'application/problem+json',
      headers,
      body: JSON.stringify(body),
    })

/** The findings of axe. */
export async function axe(page: Page): Promise<string[]> {
  await page.evaluate(axeCore.source)
  const found = await page.evaluate('axe.run()')
  const { violations } = found as { violations: { id: string; nodes: { html: string }[] }[] }
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
}
