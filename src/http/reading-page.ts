/** `GET /docs`: Swagger UI shows the OpenAPI document. Its files are in `web/dist`, so no third party is called. */
import { extname } from 'node:path'
import express, { type Request, type Router } from 'express'
import { html } from '../base/html.ts'
import { brandedStyle, createFixedAnswer, logo, readWebFile } from '../base/own-pages.ts'

export function createReadingPage(): Router {
  const router = express.Router()
  router.get('/', (request, response) => {
    const folder = folderFrom(request)
    response.type('html').send(page(folder, response.locals.home ?? folder).toString())
  })
  const files = {
    '/start.js': start,
    '/page.css': brandedStyle('brand/api.css'),
    '/postern.svg': logo,
    // Only the files that the page needs.
    '/swagger-ui.css': readWebFile('dist/swagger-ui/swagger-ui.css'),
    '/swagger-ui-bundle.js': readWebFile('dist/swagger-ui/swagger-ui-bundle.js'),
  }
  for (const [path, content] of Object.entries(files)) {
    const send = createFixedAnswer(content)
    router.get(path, (request, response) => send(request, response.type(extname(path))))
  }
  return router
}

/** The folder of the files, as the page sees it. A proxy may have taken a part of the path away, so only its end is known. */
const folderFrom = ({ baseUrl, originalUrl }: Request) =>
  /^[^?]*\/(\?|$)/.test(originalUrl) ? '.' : `./${baseUrl.split('/').at(-1)}`

/** `home`: the target of the logo. The demo names its first page; other hosts have none. */
const page = (base: string, home: string) => html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Postern: HTTP</title>
<link rel="icon" href="${base}/postern.svg">
<link rel="stylesheet" href="${base}/swagger-ui.css">
<link rel="stylesheet" href="${base}/page.css">
<header class="top"><a class="brand" href="${home}"><img src="${base}/postern.svg" width="28" height="28" alt="">Postern</a>
<nav aria-label="Postern"><a href="${base}/../openapi.json">openapi.json</a></nav></header>
<div id="page"></div>
<script src="${base}/swagger-ui-bundle.js"></script>
<script src="${base}/start.js"></script>
</html>
`

/** Corrects Swagger UI for screen readers: links within buttons, headings that skip a level, parts without a name. */
const start = `const here = document.currentScript.src
SwaggerUIBundle({
  url: new URL('../openapi.json', here).href,
  dom_id: '#page',
  deepLinking: true,
  syntaxHighlight: false,
  // The default would call a server of Swagger.
  validatorUrl: null,
  plugins: [
    {
      wrapComponents: {
        DeepLink: (_, { React }) => ({ text }) => React.createElement('span', null, text),
        ServersContainer: () => () => null,
      },
    },
  ],
})
const page = document.querySelector('#page')
new MutationObserver(() => {
  for (const title of page.querySelectorAll('h3, h4, h5')) title.ariaLevel = title.tagName[1] - 1
  for (const part of page.querySelectorAll('.information-container, .scheme-container')) {
    Object.assign(part, { role: 'region', ariaLabel: part.className })
  }
  for (const body of page.querySelectorAll('textarea')) body.ariaLabel = 'Request body'
  for (const table of page.querySelectorAll('.responses-table')) table.ariaLabel = table.id
  for (const button of page.querySelectorAll('.close-modal')) button.ariaLabel = 'Close'
  for (const button of page.querySelectorAll('.modal-btn')) button.ariaLabel = null
  // A part that scrolls must be reachable by keyboard.
  for (const example of page.querySelectorAll('pre')) example.tabIndex = 0
}).observe(page, { childList: true, subtree: true })
`
