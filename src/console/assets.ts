/**
 * Style, scripts and picture of the console. The hash of a file's bytes is part of its path, so browsers can cache it
 * for ever and never show an old one.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { RequestHandler } from 'express'
import { brandedStyle, logo } from '../base/brand.ts'
import type { AssetPaths } from './frame.ts'

const read = (path: string) => readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8')

const readFiles = () => ({
  'console.css': ['text/css', brandedStyle('console/console.css')],
  'console.js': ['text/javascript', read('../../web/console/console.js')],
  'idiomorph.js': ['text/javascript', read(import.meta.resolve('idiomorph'))],
  'postern.svg': ['image/svg+xml', logo],
})

export interface Assets {
  paths: AssetPaths
  /** Answers `/assets/{version}/{file}`. */
  answer: RequestHandler
}

/** Reads all files once. Throws when a file is missing. */
export function createAssets(): Assets {
  const files = new Map(Object.entries(readFiles()))
  const hash = createHash('sha256').update(JSON.stringify([...files]))
  const version = hash.digest('hex').slice(0, 12)
  const pathOf = (name: keyof ReturnType<typeof readFiles>) => `/assets/${version}/${name}`

  return {
    paths: {
      style: pathOf('console.css'),
      script: pathOf('console.js'),
      picture: pathOf('postern.svg'),
    },
    answer(request, response, next) {
      const { version: asked, file } = request.params
      const found = asked === version ? files.get(String(file)) : undefined
      if (!found) return next()
      const [type = '', content] = found
      response.set('cache-control', 'public, max-age=31536000, immutable').type(type).send(content)
    },
  }
}
