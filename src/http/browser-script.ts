/**
 * `GET /browser/postern-code.<version>.js`: the code field for any page (web/), also as `<version>.de.js` for a language
 * that is not in the main file. The bytes of a version never change, so pages may name its hash and caches keep it. Built
 * once at start, because strangers can request it.
 */
import { readFileSync } from 'node:fs'
import express, { type RequestHandler, type Router } from 'express'
import { readBuiltFile } from '../base/built-file.ts'
import { createFixedAnswer } from '../base/fixed-answer.ts'
import { fieldFiles } from '../base/words.ts'

/** `refuse` answers all other methods. */
export function createBrowserScript(refuse: RequestHandler): Router {
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  const headers = {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    'x-content-type-options': 'nosniff',
    // Any page may load it, also a page that isolates itself from other origins.
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  }

  const router = express.Router({ caseSensitive: true, strict: true })
  for (const own of ['', ...fieldFiles.map((language) => `.${language}`)]) {
    const send = createFixedAnswer(readBuiltFile(`postern-code${own}.js`))
    const path = `/postern-code.${version}${own}.js`
    const answer: RequestHandler = (request, response) => send(request, response.set(headers))
    router.get(path, answer).all(path, refuse)
  }
  return router
}
