import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { findFiles, readSource, repositoryRoot } from '../support/source-files.ts'

/** The files and folders below the repository that a page links to, without their anchors. */
const linksIn = (page: string) =>
  [...readSource(page).matchAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)/g)].map(
    ([, target = '']) => normalize(join(dirname(page), target)).replace(/\/$/, ''),
  )

const pages = findFiles('{*.md,docs/**/*.md,lua/*.md}')

test('every link of every page leads to something', () => {
  expect(pages.length).toBeGreaterThan(10)
  const dead = pages.flatMap((page) =>
    linksIn(page)
      .filter((target) => !existsSync(join(repositoryRoot, target)))
      .map((target) => `${page}: ${target}`),
  )
  expect(dead).toEqual([])
})

test('what the README and the pages in the package link to is in the package', () => {
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: repositoryRoot,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  )
  const files: string[] = packed.files.map(({ path }: { path: string }) => path)
  const isPacked = (target: string) =>
    files.some((file) => file === target || file.startsWith(`${target}/`))
  const missing = pages
    .filter(isPacked)
    .flatMap((page) => linksIn(page).filter((target) => !isPacked(target)))
  expect(isPacked('README.md')).toBe(true)
  expect([...new Set(missing)]).toEqual([])
})
