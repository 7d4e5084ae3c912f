/**
 * Style, scripts and picture of the console. The hash of a file's bytes is part of its path, so browsers can cache it
 * for ever and never show an old one.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { RequestHandler } from 'express'
import type { AssetPaths } from './frame.ts'

const files = {
  'console.css': ['../../web/console/console.css', 'text/css'],
  'console.js': ['../../web/console/console.js', 'text/javascript'],
  'idiomorph.js': [import.meta.resolve('idiomorph'), 'text/javascript'],
  'console.svg': ['../../web/console/console.svg', 'image/svg+xml'],
} as const

export interface Assets {
  paths: AssetPaths
  /** Answers `/assets/{version}/{file}`. */
  answer: RequestHandler
}

/** Reads all files once. Throws when a file is missing. */
export function createAssets(): Assets {
  const read = Object.entries(files).map(([name, [path, type]]) => {
    const file = fileURLToPath(new URL(path, import.meta.url))
    return [name, { type: `${type}; charset=utf-8`, bytes: readFileSync(file) }] as const
  })
  const byName = new Map(read)
  const hash = createHash('sha256')
  for (const [, { bytes }] of read) hash.update(bytes)
  const version = hash.digest('hex').slice(0, 12)
  const pathOf = (name: keyof typeof files) => `/assets/${version}/${name}`

  return {
    paths: {
      style: pathOf('console.css'),
      script: pathOf('console.js'),
      picture: pathOf('console.svg'),
    },
    answer(request, response, next) {
      const { version: asked, file } = request.params
      const found = asked === version ? byName.get(String(file)) : undefined
      if (!found) return next()
      response.set({
        'content-type': found.type,
        'cache-control': 'public, max-age=31536000, immutable',
      })
      response.send(found.bytes)
    },
  }
}
