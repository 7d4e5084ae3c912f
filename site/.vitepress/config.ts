/**
 * `npm run docs`: docs/ as a site. The pages are also read on GitHub, so nothing in them is VitePress's own: what the
 * site needs besides (order, links out of docs/) is made here and beside this file.
 */
import { defineConfig } from 'vitepress'
import { githubSlug } from '../github-slug.ts'
import { hideReasons, mendLinks, mendTables } from '../markdown.ts'
import { chinese, english } from '../navigation.ts'

/** A door in a wall. In the page itself, because it is smaller than a request for it. */
const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0a7d4f"/><path d="M5 13V7a3 3 0 0 1 6 0v6z" fill="#fff"/><circle cx="9.6" cy="9.6" r=".8" fill="#0a7d4f"/></svg>',
)}`

export default defineConfig({
  srcDir: '../docs',
  base: '/docs/guide/',
  title: 'Postern',
  description: 'Self-hosted one-time codes and notices by SMS and email, with exact limits',
  // GitHub shows a folder's README.md; a site shows its index.
  rewrites: { 'README.md': 'index.md', ':folder/README.md': ':folder/index.md' },
  // In files of their own, so that a Content-Security-Policy needs no exception that changes with every build.
  metaChunk: true,
  lastUpdated: false,
  // They lead to what the reader has started.
  ignoreDeadLinks: 'localhostLinks',
  head: [['link', { rel: 'icon', href: icon }]],
  markdown: {
    anchor: { slugify: githubSlug },
    config(markdown) {
      hideReasons(markdown)
      mendTables(markdown)
      mendLinks(markdown)
    },
  },
  locales: {
    root: { label: 'English', lang: 'en', ...english },
    zh: { label: '中文', lang: 'zh-CN', ...chinese },
  },
  themeConfig: {
    outline: [2, 3],
    // Not every page is there in both languages: the switch leads to the other's first page.
    i18nRouting: false,
    search: { provider: 'local', options: { locales: { zh: { translations: chinese.search } } } },
  },
})
