import { readFileSync } from 'node:fs'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { textOf } from '../tools/markdown.ts'
import type { Postern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { releaseLater } from '../tools/release.ts'

/** As docs/code-field.md has a page reserve the field's room. */
export const reservedRoom = `<style>${textOf('examples/plain-form/page.css#room')}</style>`

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

/** Where the API serves the field. */
export const scriptPath = `/browser/postern-code.${version}.js`

export interface FieldOptions {
  /** Of the element, beside `key` and `src`. */
  attributes?: string
  /** In the place of the element, with `{field}` where it goes. */
  body?: string
  lang?: string
  head?: string
  context?: BrowserContextOptions
}

/** A page of the API's own origin with a form and the field in it. */
export async function openField(
  browser: Browser,
  postern: Postern,
  options: FieldOptions = {},
): Promise<Page> {
  const { attributes = '', lang = 'en', head = '', body = '{field}' } = options
  const origin = new URL(postern.url).origin
  const key = await publishableKey(postern.database, { origins: [origin] })
  const field = `<postern-code key="${key}" src="${postern.url}" scene="signup" ${attributes}><noscript>Switch JavaScript on to get a code.</noscript></postern-code>`
  const html = `<!doctype html>
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
  const context = await browser.newContext(options.context)
  releaseLater(() => context.close())
  const page = await context.newPage()
  await page.route(`${origin}/page`, (route) =>
    route.fulfill({ contentType: 'text/html', body: html }),
  )
  await page.goto(`${origin}/page`)
  return page
}
