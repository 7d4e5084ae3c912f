/**
 * The code field for any page (web/). Both kinds of files are built once at start, because strangers can request them.
 * - `GET /browser/postern-code.<version>.js`: the bytes of a version never change, so pages may name its hash and caches keep it.
 * - `GET /browser/postern-code.<language>.json`: the texts of a language. The field of any version loads them, so their address
 *   has no version.
 */
import express, { type RequestHandler, type Router } from 'express'
import { ownPackage } from '../base/command-line.ts'
import { createFixedAnswer, readWebFile } from '../base/own-pages.ts'
import { languages, words } from '../base/words.ts'

/** `refuse` answers all other methods. */
export function createBrowserScript(refuse: RequestHandler): Router {
  const router = express.Router({ caseSensitive: true, strict: true })
  const serve = (name: string, content: string | Buffer, type: string, cacheControl: string) => {
    const send = createFixedAnswer(content)
    const headers = {
      'content-type': `${type}; charset=utf-8`,
      'cache-control': `public, ${cacheControl}`,
      'x-content-type-options': 'nosniff',
      // Any page may load it, also a page that isolates itself from other origins.
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
    }
    const path = `/postern-code.${name}`
    const answer: RequestHandler = (request, response) => send(request, response.set(headers))
    router.get(path, answer).all(path, refuse)
  }
  const script = readWebFile('dist/postern-code.js')
  serve(`${ownPackage.version}.js`, script, 'text/javascript', 'max-age=31536000, immutable')
  for (const language of languages) {
    const texts = JSON.stringify(words[language].field)
    serve(`${language}.json`, texts, 'application/json', 'max-age=3600')
  }
  return router
}
