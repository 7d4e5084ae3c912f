/**
 * Style, scripts and picture of the console. The hash of a file's bytes is part of its path, so browsers can cache it
 * for ever and never show an old one.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RequestHandler } from 'express'
import { brandedStyle, createFixedAnswer, logo, readWebFile } from '../base/own-pages.ts'

const readFiles = () => ({
  'console.css': brandedStyle('console/console.css'),
  'console.js': readWebFile('console/console.js').toString(),
  'idiomorph.js': readFileSync(fileURLToPath(import.meta.resolve('idiomorph')), 'utf8'),
  'postern.svg': logo,
})

interface Assets {
  paths: Record<'style' | 'script' | 'picture', string>
  /** Answers `/assets/{version}/{file}`. */
  answer: RequestHandler
}

/** Reads all files once. Throws when a file is missing. */
export function createAssets(): Assets {
  const contents = Object.entries(readFiles())
  const hash = createHash('sha256').update(JSON.stringify(contents))
  const version = hash.digest('hex').slice(0, 12)
  const files = new Map(contents.map(([name, content]) => [name, createFixedAnswer(content)]))
  const pathOf = (name: keyof ReturnType<typeof readFiles>) => `/assets/${version}/${name}`

  return {
    paths: {
      style: pathOf('console.css'),
      script: pathOf('console.js'),
      picture: pathOf('postern.svg'),
    },
    answer(request, response, next) {
      const { version: asked, file } = request.params
      const name = String(file)
      const send = asked === version ? files.get(name) : undefined
      if (!send) return next()
      response.set('cache-control', 'public, max-age=31536000, immutable').type(extname(name))
      return send(request, response)
    },
  }
}
