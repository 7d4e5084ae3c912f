/** Each page for users exists in English and in Chinese, at the same place below docs/ and docs/zh/. */
import { expect, test } from 'vitest'
import { chinese, english, isEnglishOnly } from '../../site/navigation.ts'
import { words } from '../../src/base/words.ts'
import { docsPages, fencesOf } from '../tools/markdown.ts'
import { readSource } from '../tools/source-files.ts'

const pathOf = (page: string) => page.replace(/^docs/, '').replace(/(README)?\.md$/, '')
const inChinese = docsPages.map(pathOf).filter((path) => path.startsWith('/zh/'))
const inEnglish = docsPages.map(pathOf).filter((path) => !path.startsWith('/zh/'))

test('every page of the guide and the reference is there in Chinese, and no other page', () => {
  const forUsers = inEnglish.filter((path) => !isEnglishOnly(path))
  expect(forUsers.length).toBeGreaterThan(25)
  expect(inChinese.map((path) => path.slice(3)).sort()).toEqual(forUsers.sort())
})

/** Each page once, without the pages that are made from the code. */
const listed = ({ sidebar }: { sidebar: readonly { items?: { link?: string }[] }[] }) =>
  sidebar
    .flatMap(({ items = [] }) => items.map(({ link = '' }) => link))
    .filter((link) => !link.startsWith('/reference/'))

test('both sidebars list every page once, in the same order', () => {
  const isOfAFolder = (path: string) => /^\/(decisions\/.+|)$/.test(path)
  const all = inEnglish.filter((path) => !isOfAFolder(path))
  expect(listed(english.themeConfig).sort()).toEqual(all.sort())
  const asEnglish = listed(chinese.themeConfig).map((link) => link.replace(/^\/zh/, ''))
  expect(asEnglish).toEqual(listed(english.themeConfig))
})

test.each(docsPages.filter((page) => page.startsWith('docs/zh/')))(
  '%s links to Chinese pages where they exist, and shows the files of the English page',
  (page) => {
    const links = [...readSource(page).matchAll(/\]\(([^)#:]+\.md)/g)].map(([, link = '']) =>
      new URL(link, `http://site/${page}`).pathname.slice(1),
    )
    const leaves = links.filter(
      (link) =>
        link.startsWith('docs/') && !link.startsWith('docs/zh/') && !isEnglishOnly(pathOf(link)),
    )
    expect(leaves).toEqual([])
    const files = (of: string) => fencesOf(of).flatMap(({ file }) => file ?? [])
    expect(files(page)).toEqual(
      expect.arrayContaining(
        files(page.replace('/zh/', '/')).filter((file) => !file.startsWith('templates/')),
      ),
    )
  },
)

/** The subjects of a page's table rows: the code in their first cell. */
const rowsOf = (page: string) =>
  [...readSource(page).matchAll(/^\|([^|]*)\|/gm)]
    .flatMap(([, cell = '']) => cell.match(/`[^`]+`/g) ?? [])
    .sort()

/** In Chinese, the sections of the alerts are one table. */
const isShorter = (page: string) => page.endsWith('/operations.md')

test.each(docsPages.filter((page) => page.startsWith('docs/zh/') && !isShorter(page)))(
  '%s has the fields, settings and errors of the English page',
  (page) => {
    expect(rowsOf(page)).toEqual(rowsOf(page.replace('/zh/', '/')))
  },
)

const consoleWords = { 'docs/support.md': words.en.console, 'docs/zh/support.md': words.zh.console }

test.each(Object.entries(consoleWords))(
  '%s names pages, parts and figures of the console by its own labels',
  (page, words) => {
    const { nav, story, today, search } = words
    const labels = [
      ...Object.values(nav),
      ...[story.now, story.timeline, story.reset, story.reveal, search.more],
      ...[today.sent, today.delivered, today.passed, today.refused, today.byProvider],
      ...[words.signOut, words.keys.everywhere],
    ]
    const text = readSource(page)
    expect(labels.filter((label) => !text.includes(label))).toEqual([])
  },
)

test('Chinese pages and the console have one word for a limit', () => {
  const texts = [...docsPages.filter((page) => page.startsWith('docs/zh/')), 'src/i18n/zh.json']
  const others = texts.flatMap(
    (file) =>
      readSource(file).match(/.{0,9}(?:重置限制|频率限制|没有限制|的限制(?!在)).{0,9}/g) ?? [],
  )
  expect(others).toEqual([])
})
