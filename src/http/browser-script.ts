/**
 * `GET /browser/postern-code.<version>.js`: the code field for any page (web/). The bytes of a version never change,
 * so pages may name its hash and caches keep it. Built once at start, because strangers can request it.
 */
import { readFileSync } from 'node:fs'
import express, { type RequestHandler, type Router } from 'express'
import { createFixedAnswer } from '../base/fixed-answer.ts'

/** `refuse` answers all other methods. */
export function createBrowserScript(refuse: RequestHandler): Router {
  const { version } = JSON.parse(readText('../../package.json')) as { version: string }
  const send = createFixedAnswer(readText('../../web/dist/postern-code.js'))
  const headers = {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    'x-content-type-options': 'nosniff',
    // Any page may load it, also a page that isolates itself from other origins.
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  }

  const answer: RequestHandler = (request, response) => send(request, response.set(headers))
  const path = `/postern-code.${version}.js`
  return express.Router({ caseSensitive: true, strict: true }).get(path, answer).all(path, refuse)
}

/** Paths are relative to the repository or package, from src/http and from dist/http. */
function readText(path: string): string {
  try {
    return readFileSync(new URL(path, import.meta.url), 'utf8')
  } catch (error) {
    throw new Error(`${path} is missing; in a checkout \`npm run browser\` makes it`, {
      cause: error,
    })
  }
}
