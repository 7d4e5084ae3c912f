/**
 * The documentation site of `npm run docs`, served by the demo alone at /docs/guide/. Only a checkout has it: where it is
 * not built, a page says so.
 *
 * A built page has two small scripts inside it, the same on every page (light or dark before the first paint); they
 * are named by their hash, so that nothing else inside a page may run. Code is coloured by style attributes.
 */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import express, { type ErrorRequestHandler, type Router } from 'express'
import helmet from 'helmet'
import { readIfThere } from './server-process.ts'

export const guidePath = '/docs/guide/'
const builtSite = fileURLToPath(new URL('../../site/dist', import.meta.url))

export function createGuide(folder: string = builtSite): Router {
  const startPage = readIfThere(join(folder, 'index.html'))
  const router = express.Router()
  router.use(
    helmet({
      contentSecurityPolicy: {
        directives: {
          scriptSrc: ["'self'", ...inlineScripts(startPage).map(sourceOf)],
          styleSrc: ["'self'", "'unsafe-inline'"],
          upgradeInsecureRequests: null,
        },
      },
      strictTransportSecurity: false,
    }),
  )
  if (startPage === '')
    router.get('/{*path}', (_, response) => void response.status(404).send(notBuilt))
  else {
    router.use(express.static(folder, { extensions: ['html'] }))
    router.use((_, response) => response.status(404).sendFile('404.html', { root: folder }))
  }
  router.use(notAPath)
  return express.Router().use(guidePath, router)
}

/** Bytes that are no text, which Express would answer with where it found them. */
const notAPath: ErrorRequestHandler = (error, _request, response, next) => {
  if (!(error instanceof URIError)) return next(error)
  response.status(400).type('text').send('That is not an address.\n')
}

/** What stands between the tags of each script that names no file. */
const inlineScripts = (html: string) =>
  html
    .split('<script')
    .slice(1)
    .filter((part) => !part.slice(0, part.indexOf('>')).includes(' src='))
    .map((part) => part.slice(part.indexOf('>') + 1, part.indexOf('</script>')))

const sourceOf = (script: string) =>
  `'sha256-${createHash('sha256').update(script).digest('base64')}'`

const notBuilt = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Postern: the guide is not built</title>
<h1>The guide is not built yet</h1>
<p>Run <code>npm run docs</code> in the folder of Postern, then start the demo again. Its pages are plain files too, in
<code>docs/</code>. The calls of the API are <a href="/docs">here</a>.</p>
</html>
`
