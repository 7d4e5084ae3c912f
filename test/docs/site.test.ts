/**
 * The built site as the demo serves it, in a browser: readable for all, searchable, and without requests to other
 * hosts.
 */
import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import express from 'express'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createGuide, guidePath } from '../../src/dev/guide.ts'
import { launchBrowser, openPage } from '../tools/browser.ts'
import { listen } from '../tools/listen.ts'
import { anchorsOf, docsPages, fencesOf, linksOf } from '../tools/markdown.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const built = join(repositoryRoot, 'site/dist')
let url: string
let browser: Browser

beforeAll(async () => {
  await promisify(execFile)('npm', ['run', 'docs'], { cwd: repositoryRoot })
  url = `${await listen(express().use(createGuide()))}${guidePath}`
  browser = await launchBrowser()
}, 120_000)

const opened: Page[] = []
afterAll(() => Promise.all(opened.map((page) => page.close())))

async function open(path: string): Promise<{ page: Page; asked: Set<string>; messages: string[] }> {
  const { page, messages } = await openPage(browser, 'about:blank')
  opened.push(page)
  const asked = new Set<string>()
  page.on('request', (request) => asked.add(new URL(request.url()).host))
  await page.goto(`${url}${path}`, { waitUntil: 'networkidle' })
  return { page, asked, messages }
}

/** The last width is as on a screen of 1280 px at 400 % zoom. */
const looks = [
  { width: 320, colorScheme: 'light', forcedColors: 'none' },
  { width: 768, colorScheme: 'dark', forcedColors: 'none' },
  { width: 1_440, colorScheme: 'light', forcedColors: 'none' },
  { width: 1_440, colorScheme: 'dark', forcedColors: 'none' },
  { width: 320, colorScheme: 'dark', forcedColors: 'active' },
] as const

test.each([
  ...['', 'zh/', 'start', 'guides/go-live', 'zh/abuse', 'reference/calls', 'policy-file'],
  'guides/your-language',
  'zh/nowhere',
])(
  '/%s: axe finds nothing, nothing scrolls sideways, no other host is asked; light, dark, forced, on three widths',
  async (path) => {
    const { page, asked, messages } = await open(path)
    await page.evaluate(axe)
    for (const look of looks) {
      // Otherwise the colours of links change slowly to the other scheme.
      await page.emulateMedia({ ...look, reducedMotion: 'reduce' })
      await page.setViewportSize({ width: look.width, height: 900 })
      // VitePress sets the class for the system's scheme a moment after the style sheet applies it.
      const isDark = () => page.locator('html.dark').count()
      await expect.poll(isDark).toBe(Number(look.colorScheme === 'dark'))
      const { found, isTooWide } = (await page.evaluate(`axe.run().then(({ violations }) => ({
        found: violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ' ' + target)),
        isTooWide: document.documentElement.scrollWidth > innerWidth ||
          [...document.querySelectorAll('h1, main p')].some((one) => one.getBoundingClientRect().right > innerWidth),
      }))`)) as { found: string[]; isTooWide: boolean }
      expect({ ...look, found, isTooWide }).toEqual({ ...look, found: [], isTooWide: false })
    }
    if (path.endsWith('nowhere'))
      expect(await page.locator('main h1').innerText()).toBe('没有这个页面')
    else expect(messages).toEqual([])
    expect([...asked]).toEqual([new URL(url).host])
  },
  60_000,
)

test('the demo on the first page: still at first, moving in view or on demand, with reduced motion on demand only', async () => {
  const { page } = await open('zh/')
  const picture = page.locator('.demo img:visible').last()
  const shown = () =>
    expect.poll(() =>
      picture.evaluate((image) => (image as unknown as { currentSrc: string }).currentSrc),
    )
  await shown().toContain('/demo-zh-light-still.webp')
  await page.mouse.wheel(0, 500)
  await shown().toContain('/demo-zh-light.webp')
  await page.emulateMedia({ reducedMotion: 'reduce' })
  // The browser scrolls to the same place again.
  await page.reload({ waitUntil: 'networkidle' })
  await shown().toContain('/demo-zh-light-still.webp')
  await page.getByRole('button', { name: '播放' }).click()
  await shown().toContain('/demo-zh-light.webp')
  await page.getByRole('button', { name: '停止' }).click()
  await shown().toContain('/demo-zh-light-still.webp')
})

test('with forced colours, icons without words are seen', async () => {
  const { page } = await open('')
  await page.setViewportSize({ width: 360, height: 640 })
  await page.emulateMedia({ forcedColors: 'active' })
  const styleOf = (selector: string, property: string) =>
    page.evaluate(`getComputedStyle(document.querySelector('${selector}')).${property}`)
  const text = await styleOf('main h1', 'color')
  for (const icon of ['.VPNavBarSearch .vpi-search', '.VPNavBarHamburger .top'])
    await expect.poll(() => styleOf(icon, 'backgroundColor')).toBe(text)
})

test('the table of countries shows the rows that have every word of its search', async () => {
  const { page } = await open('reference/sms-rules')
  const rows = page.locator('main tbody tr:visible')
  const all = await rows.count()
  expect(all).toBeGreaterThanOrEqual(40)
  await page.locator('main input[type=search]').fill('acma registered')
  await expect.poll(() => rows.locator('a').allTextContents()).toEqual(['Australia'])
  await page.locator('main input[type=search]').fill('')
  await expect.poll(() => rows.count()).toBe(all)
})

/** The addresses of the search results, best first. */
async function search(page: Page, words: string): Promise<string[]> {
  const input = page.locator('.VPLocalSearchBox input')
  // The page listens to its keys only when its scripts run.
  await expect
    .poll(async () => (await input.isVisible()) || (await page.keyboard.press('Control+k')))
    .toBe(true)
  await input.fill(words)
  const results = page.locator('.VPLocalSearchBox .result')
  await results.first().waitFor()
  const links = await results.evaluateAll((found) =>
    found.map((one) => (one as unknown as { href: string }).href),
  )
  return links.map((link) => decodeURI(link).replace(url, '').replace('.html', ''))
}

test.each([
  ['', 'rate limit', /^guides\/limits/],
  ['', 'sms pumping', /^abuse#sms-pumping/],
  ['', 'nginx', /^guides\/go-live#nginx/],
  ['', 'sliding', /^guides\/rule-kinds#sliding/],
  ['', 'passkeys', /^guides\/passkey/],
  ['zh/', '验证码', /^zh\/code-field/],
  ['zh/', '限流', /^zh\/(guides\/limits|limiter)/],
  ['zh/', '短信盗刷', /^zh\/abuse/],
  ['', 'upgrade', /^operations#upgrade/],
  ['', '429', /^http#answer-429/],
  ['zh/', '429', /^zh\/http#应答-429/],
  ['zh/', '升级', /^zh\/operations#升级/],
  ['zh/', 'Redis 丢数据', /^zh\/operations#redis-丢数据时/],
  ['zh/', '短信轰炸', /^zh\/abuse#短信轰炸/],
  ['zh/', '收不到', /^zh\/(support|operations)/],
])('search on /%s: the first hit for "%s" is %s', async (start, words, expected) => {
  const { page } = await open(start)
  expect((await search(page, words))[0]).toMatch(expected)
})

test('the language switch leads to the same page, and from a page that is English only to the first one', async () => {
  const { page } = await open('guides/limits')
  const linksTo = async (path: string) => {
    await page.goto(`${url}${path}`, { waitUntil: 'networkidle' })
    const links = page.locator('.VPNavTranslations a, .VPNavBarExtra a').or(page.locator('a[lang]'))
    return (
      await links.evaluateAll((all) => all.map((one) => (one as unknown as { href: string }).href))
    ).map((href) => href.replace(url, '').replace('.html', ''))
  }
  expect(await linksTo('guides/limits')).toContain('zh/guides/limits')
  expect(await linksTo('zh/providers/')).toContain('providers/')
  expect(await linksTo('zh/')).toContain('')
  expect(await linksTo('decisions/')).toContain('zh/')
})

test('axe finds nothing in the search, also after another result was chosen by keyboard', async () => {
  const { page } = await open('start')
  await search(page, 'rate limit')
  await page.keyboard.press('ArrowDown')
  await page.locator('.VPLocalSearchBox a[aria-current=true].selected').waitFor()
  await page.evaluate(axe)
  const found = await page.evaluate(`axe.run().then(({ violations }) =>
    violations.map(({ id, nodes }) => [id, nodes[0].html]))`)
  expect(found).toEqual([])
})

test('search finds "60s", by keyboard, and leads to a page that has it', async () => {
  const { page } = await open('')
  expect((await search(page, '60s')).length).toBeGreaterThan(2)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.waitForURL((to) => to.pathname !== guidePath)
  // The address changes before the page does.
  await expect.poll(() => page.locator('main').textContent()).toContain('60s')
})

test('every link of every built page leads to a page of the site and a heading in it, or out of it by https', () => {
  const pages = new Map(
    globSync('**/*.html', { cwd: built }).map((name) => {
      const html = readFileSync(join(built, name), 'utf8')
      return [name.replace(/\.html$/, '').replace(/(^|\/)index$/, '$1'), html] as const
    }),
  )
  expect(pages.size).toBeGreaterThan(40)
  const dead: string[] = []
  for (const [name, html] of pages) {
    if (name === '404') continue
    for (const [, href = ''] of html.matchAll(/<a [^>]*href="([^"]*)"/g)) {
      const { origin, pathname, hash } = new URL(href, `http://site${guidePath}${name}`)
      if (origin !== 'http://site') {
        if (!/^https:\/\/|^http:\/\/localhost/.test(href)) dead.push(`${name}: ${href}`)
        continue
      }
      const target = pages.get(pathname.slice(guidePath.length).replace(/\.html$/, ''))
      const anchor = decodeURIComponent(hash.slice(1))
      if (!target || (anchor && !target.includes(`id="${anchor}"`))) dead.push(`${name}: ${href}`)
    }
  }
  expect([...new Set(dead)]).toEqual([])
})

test('every page is there as Markdown too, in a list of its language, and its links lead to such pages and headings', () => {
  const namesOf = (pattern: string) => globSync(pattern, { cwd: built }).sort()
  const pages = namesOf('**/*.html').filter((name) => name !== '404.html')
  expect(namesOf('**/*.md')).toEqual(pages.map((name) => name.replace(/html$/, 'md')).sort())
  const textOf = (name: string) => readFileSync(join(built, name), 'utf8')
  const anchors = new Map(namesOf('**/*.md').map((name) => [name, anchorsOf(textOf(name))]))
  const dead: string[] = []
  for (const name of [...anchors.keys(), 'llms.txt', 'zh/llms.txt'])
    for (const { path, anchor } of linksOf(textOf(name))) {
      const { pathname } = new URL(path, `http://site${guidePath}${name}`)
      const target = path === '' ? name : pathname.replace(guidePath, '')
      const isThere = anchors.has(target) || existsSync(join(built, target))
      const isHeading = anchor === undefined || anchors.get(target)?.includes(decodeURI(anchor))
      if (!isThere || !isHeading) dead.push(`${name}: ${path}#${anchor}`)
    }
  expect(dead).toEqual([])
  const listed = ['', 'zh/'].flatMap((folder) =>
    linksOf(textOf(`${folder}llms.txt`)).map(({ path }) => path.replace(guidePath, '')),
  )
  const isOfAFolder = (name: string) => /^decisions\/\d|^(zh\/)?index/.test(name)
  expect(
    [...anchors.keys()].filter((name) => !isOfAFolder(name) && !listed.includes(name)),
  ).toEqual([])
})

test('a page names its Markdown, and the demo serves it as such', async () => {
  const html = readFileSync(join(built, 'guides/limits.html'), 'utf8')
  const [, href = ''] =
    /<link rel="alternate" type="text\/markdown" href="([^"]+)">/.exec(html) ?? []
  const answer = await fetch(new URL(href, url))
  expect(answer.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
  expect(await answer.text()).toMatch(/^# Limits\n/)
  const list = await fetch(`${url}llms.txt`)
  expect(list.headers.get('content-type')).toBe('text/plain; charset=utf-8')
})

test('variables of messages are shown as they are written', () => {
  const inCode = (page: string) => {
    const text = readFileSync(join(built, page), 'utf8').replace(/^```[\s\S]*?^```$/gm, '')
    return [...text.matchAll(/`[^`\n]*?(\{\{[#\w./]+\}\})[^`\n]*`/g)].map(
      ([, variable = '']) => variable,
    )
  }
  const pages = globSync('**/*.md', { cwd: built })
    .map((page) => [page, inCode(page)] as const)
    .filter(([, variables]) => variables.length > 0)
  expect(pages.length).toBeGreaterThan(5)
  for (const [page, variables] of pages) {
    const html = readFileSync(join(built, page.replace(/md$/, 'html')), 'utf8')
    const shown = [...html.matchAll(/<code>([^<]*)<\/code>/g)].map(([, code = '']) => code)
    const isShown = (variable: string) => shown.some((code) => code.includes(variable))
    expect(
      variables.filter((one) => !isShown(one)),
      page,
    ).toEqual([])
  }
})

test('one code in several languages is shown in tabs, by a press or by the keyboard', async () => {
  const { page } = await open('guides/your-language')
  const shown = page.locator('.vp-code-group div[class*=language-]:visible')
  const language = () => expect.poll(() => shown.getAttribute('class'))
  await language().toContain('language-java')
  await page.locator('label[data-title="C#"]').click()
  await language().toContain('language-csharp')
  await page.keyboard.press('ArrowLeft')
  await language().toContain('language-ruby')
})

test('notes for the tests at code blocks are shown nowhere, the search included', () => {
  const reasons = docsPages.flatMap(fencesOf).flatMap(({ reason }) => reason ?? [])
  expect(reasons.length).toBeGreaterThan(10)
  const texts = globSync('**/*.{html,js,md,txt}', { cwd: built }).map((name) =>
    readFileSync(join(built, name), 'utf8').replaceAll('&#39;', "'"),
  )
  expect(reasons.filter((reason) => texts.some((text) => text.includes(reason)))).toEqual([])
})
