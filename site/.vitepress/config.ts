/**
 * `npm run docs`: docs/ as a site. The pages are also read on GitHub, so nothing in them is VitePress's own: what the
 * site needs besides (order, links out of docs/) is made here and beside this file.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type DefaultTheme, defineConfig } from 'vitepress'
import { githubSlug } from '../github-slug.ts'
import { makeHome } from '../home.ts'
import {
  dropTitleOfHome,
  hideReasons,
  makeTabs,
  mendLinks,
  mendTables,
  showBraces,
} from '../markdown.ts'
import { chinese, english, englishOnly } from '../navigation.ts'
import { writeForPrograms } from '../programs.ts'
import { miniSearch } from '../search.ts'

/** In the page itself, because it is smaller than a request for it. */
const logo = `data:image/svg+xml,${encodeURIComponent(readFileSync(new URL('../../web/brand/postern.svg', import.meta.url), 'utf8'))}`

const description =
  'Self-hosted one-time codes and notices by SMS, email, call, WhatsApp and Telegram, with exact limits'
const base = '/docs/guide/'
/** A whole address, if `SITE_URL` has the beginning. */
const address = `${process.env.SITE_URL ?? ''}${base}`
/** The preview of a link to the site. It needs whole addresses. */
const preview = {
  'og:type': 'website',
  'og:title': 'Postern',
  'og:description': description,
  'og:image': `${address}preview.png`,
  'twitter:card': 'summary_large_image',
}

/**
 * The language switch leads to the same page, or to the first page of the other language if there is no such page.
 * VitePress sends the function to the browser as text, so it can use only its arguments.
 */
const samePage: DefaultTheme.I18nRouting = ({ theme }, { data, hash }, language) => {
  const page = data.relativePath.replace(/^zh\//, '').replace(/(^|\/)index\.md$/, '$1')
  const isThere = !theme.value.englishOnly.some((start: string) => page.startsWith(start))
  return `${language === 'zh' ? '/zh/' : '/'}${isThere ? page.replace(/\.md$/, '.html') + hash : ''}`
}

export default defineConfig({
  srcDir: '../docs',
  base,
  title: 'Postern',
  description,
  // GitHub shows a folder's README.md; a site shows its index.
  rewrites: {
    'README.md': 'index.md',
    ':folder/README.md': ':folder/index.md',
    'zh/:folder/README.md': 'zh/:folder/index.md',
  },
  // In separate files, so that a Content-Security-Policy needs no exception that changes with every build.
  metaChunk: true,
  lastUpdated: false,
  transformPageData: makeHome,
  transformHead: ({ page }) =>
    page === '404.md'
      ? []
      : [['link', { rel: 'alternate', type: 'text/markdown', href: `${base}${page}` }]],
  buildEnd: ({ srcDir, outDir, pages, dynamicRoutes, rewrites }) =>
    writeForPrograms(
      outDir,
      address,
      pages.map((page) => ({
        path: rewrites.map[page] ?? page,
        source:
          dynamicRoutes.find(({ path }) => path === page)?.content ??
          readFileSync(join(srcDir, page), 'utf8'),
      })),
    ),
  // They lead to servers that the reader has started.
  ignoreDeadLinks: 'localhostLinks',
  head: [
    ['link', { rel: 'icon', href: logo }],
    ...Object.entries(preview).map(([property, content]): [string, Record<string, string>] => [
      'meta',
      { property, content },
    ]),
  ],
  markdown: {
    anchor: { slugify: githubSlug },
    config(markdown) {
      hideReasons(markdown)
      makeTabs(markdown)
      showBraces(markdown)
      mendTables(markdown)
      mendLinks(markdown)
      dropTitleOfHome(markdown)
    },
  },
  locales: {
    root: { label: 'English', lang: 'en', ...english },
    zh: { label: '中文', lang: 'zh-CN', ...chinese },
  },
  themeConfig: {
    logo,
    outline: [2, 3],
    i18nRouting: samePage,
    englishOnly,
    search: {
      provider: 'local',
      options: { miniSearch, locales: { zh: { translations: chinese.search } } },
    },
  },
})
