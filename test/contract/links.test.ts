import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { anchorsOf, linksOf } from '../tools/markdown.ts'
import { findFiles, readSource, repositoryRoot } from '../tools/source-files.ts'

const pages = findFiles('{*.md,docs/**/*.md,lua/*.md,src/**/*.md}')

/**
 * `templates/` is left out, because guides name files there that the reader makes. So are paths with a placeholder in
 * capitals.
 */
const ownPath =
  /(?<![\w/.@-])((?:src|test|web|lua|site|bench|deploy|examples|policies|prisma)\/(?!\S*[A-Z]{2})[\w./*@-]*[\w*])/g

/** The files and folders below the repository that a page links to, and the anchors in them. */
const targetsIn = (page: string) =>
  linksOf(readSource(page)).map(({ path, anchor }) => ({
    target: path === '' ? page : normalize(join(dirname(page), path)).replace(/\/$/, ''),
    anchor,
  }))

test('every link of every page leads to something', () => {
  expect(pages.length).toBeGreaterThan(10)
  const dead = pages.flatMap((page) =>
    targetsIn(page)
      .filter(({ target }) => !existsSync(join(repositoryRoot, target)))
      .map(({ target }) => `${page}: ${target}`),
  )
  expect(dead).toEqual([])
})

test('every anchor of every link is a heading of its page', () => {
  const anchored = pages.flatMap((page) =>
    targetsIn(page)
      .filter(({ target, anchor }) => anchor !== undefined && target.endsWith('.md'))
      .map(({ target, anchor = '' }) => ({ page, target, anchor })),
  )
  expect(anchored.length).toBeGreaterThan(30)
  const dead = anchored.filter(
    ({ target, anchor }) =>
      existsSync(join(repositoryRoot, target)) && !anchorsOf(readSource(target)).includes(anchor),
  )
  expect(dead.map(({ page, target, anchor }) => `${page}: ${target}#${anchor}`)).toEqual([])
})

test('every decision has a separate number, and the list names it in its order', () => {
  const decisions = findFiles('docs/decisions/0*.md')
  expect(decisions.length).toBeGreaterThan(10)
  const numbers = decisions.map((page) => Number(page.match(/\/(\d{4})-/)?.[1]))
  expect(numbers).toEqual(decisions.map((_, index) => index + 1))
  expect(targetsIn('docs/decisions/README.md').map(({ target }) => target)).toEqual(decisions)
})

test('a file or folder of the repository that a page names without a link is there', () => {
  const named = pages.flatMap((page) =>
    [...readSource(page).matchAll(ownPath)].map(([, path = '']) => ({ page, path })),
  )
  expect(named.length).toBeGreaterThan(50)
  const gone = named.filter(({ path }) => findFiles(path).length === 0)
  expect(gone.map(({ page, path }) => `${page}: ${path}`)).toEqual([])
})

test('every picture of a page is there, and small enough to be loaded beside it', () => {
  const pictures = pages.flatMap((page) =>
    [
      ...readSource(page).matchAll(
        /!\[[^\]]*\]\(([^)]+)\)|\bsrc(?:set)?="([^"]+\.(?:png|webp|svg))"/g,
      ),
    ]
      .map(([, shown, tag]) => normalize(join(dirname(page), shown ?? tag ?? '')))
      .map((file) => ({ page, file })),
  )
  expect(pictures.length).toBeGreaterThan(20)
  const size = (file: string) =>
    statSync(join(repositoryRoot, file), { throwIfNoEntry: false })?.size ?? Infinity
  expect(pictures.filter(({ file }) => size(file) > 300_000)).toEqual([])
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
    .flatMap((page) => targetsIn(page).filter(({ target }) => !isPacked(target)))
  expect(isPacked('README.md')).toBe(true)
  expect([...new Set(missing.map(({ target }) => target))]).toEqual([])
})
