/** `GET /docs`: the OpenAPI document as a page, read by Swagger UI, which comes with us: no third party is asked. */
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import express, { type Router } from 'express'

const root = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')))

export function createReadingPage(): Router {
  const router = express.Router()
  router.get('/', (request, response) => {
    response.type('html').send(page(escaped(request.baseUrl)))
  })
  router.get('/start.js', (_, response) => {
    response.type('js').send(start)
  })
  // Only what the page asks for.
  for (const file of ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png']) {
    router.get(`/${file}`, (request, response, next) => {
      // Whole or not at all: answers to ranges and conditions are none of the contract's.
      for (const name of ['if-match', 'if-unmodified-since']) delete request.headers[name]
      response.sendFile(file, { root, acceptRanges: false }, (error) => {
        if (error && !response.headersSent) next()
      })
    })
  }
  return router
}

const page = (base: string) => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Postern: HTTP</title>
<link rel="icon" href="${base}/favicon-32x32.png">
<link rel="stylesheet" href="${base}/swagger-ui.css">
<div id="page"><p>The document itself is at <a href="${base}/../openapi.json">openapi.json</a>.</p></div>
<script src="${base}/swagger-ui-bundle.js"></script>
<script src="${base}/start.js"></script>
</html>
`

/** A host may mount us below a parameter, which holds what a caller wrote. */
const escaped = (text: string) =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const start = `SwaggerUIBundle({
  url: new URL('../openapi.json', document.currentScript.src).href,
  dom_id: '#page',
  deepLinking: true,
  // The default asks a server of Swagger's.
  validatorUrl: null,
})
`
