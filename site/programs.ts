/**
 * The site for readers that are programs: each page also as Markdown, at its address with `.md`, and `llms.txt`
 * (https://llmstxt.org), the list of the pages. The Chinese pages have a list in `zh/`.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DefaultTheme } from 'vitepress'
import { notRunReason, onSite, tabsMark } from './markdown.ts'
import { chinese, english } from './navigation.ts'

export interface Page {
  /** On the site, such as `guides/limits.md`. */
  readonly path: string
  readonly source: string
}

/** `address`: the beginning of the links to the pages. */
export function writeForPrograms(folder: string, address: string, pages: readonly Page[]): void {
  const made = pages.map(({ path, source }) => ({ path, source: asMarkdown(source, path) }))
  for (const { path, source } of made) write(folder, path, source)
  write(folder, 'llms.txt', listOf(made, english.themeConfig.sidebar, '', address))
  write(folder, 'zh/llms.txt', listOf(made, chinese.themeConfig.sidebar, 'zh/', address))
}

function write(folder: string, name: string, text: string): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), text)
}

/** The page without its parts for browsers and for the tests. Its links lead to Markdown, or out of the site. */
export function asMarkdown(source: string, page: string): string {
  let fence = ''
  const lines = withoutScripts(source)
    .split('\n')
    .map((line) => {
      const mark = /^ *(```+)/.exec(line)?.[1] ?? ''
      if (mark !== '') fence = fence === '' ? mark : ''
      if (mark !== '') return line.replace(notRunReason, '')
      return fence === '' ? linesWithLinks(line, page) : line
    })
  return lines.filter((line) => !tabsMark.test(line)).join('\n')
}

/** The search and the table of a page that is made from the code. The sections below have the same facts. */
function withoutScripts(source: string): string {
  return source
    .replace(/<(script|style)[\s\S]*?<\/\1>\n*/g, '')
    .replace(/<input [^>]*>\n*/g, '')
    .replace(/<table>[\s\S]*?<\/table>\n*/g, '')
    .replace(/ \{#[\w-]+\}$/gm, '')
    .replace(/<a href="([^"]+)"[^>]*>([^<]*)<\/a>/g, '[$2]($1)')
}

const linesWithLinks = (line: string, page: string) =>
  line.replace(/\]\((?![a-z]+:)([^)\s]+)\)/g, (_, href: string) => `](${toMarkdown(href, page)})`)

function toMarkdown(href: string, page: string): string {
  return onSite(href, page, 'index.md').replace(/\/(?=#|$)/, '/index.md')
}

/**
 * The title and the first paragraph of a list are those of the first page. A page of the sidebar may be missing while the
 * docs are written.
 */
function listOf(
  pages: readonly Page[],
  groups: readonly DefaultTheme.SidebarItem[],
  folder: string,
  address: string,
): string {
  const find = (link: string) => {
    const path = `${link.slice(1)}${link.endsWith('/') ? 'index' : ''}.md`
    return pages.find((one) => one.path === path)
  }
  const entry = ({ text = '', link = '' }: DefaultTheme.SidebarItem) => {
    const page = find(link)
    return page ? [`- [${text}](${address}${page.path}): ${firstSentenceOf(page.source)}`] : []
  }
  const sections = groups.map(
    ({ text, items = [] }) => `## ${text}\n\n${items.flatMap(entry).join('\n')}\n`,
  )
  const other = folder === '' ? `[中文](${address}zh/llms.txt)` : `[English](${address}llms.txt)`
  const summary = firstSentenceOf(find(`/${folder}`)?.source ?? '')
  return [`# Postern\n\n> ${summary}\n\n${other}\n`, ...sections].join('\n')
}

/** Of the first paragraph, without the marks of links and bold text. */
export function firstSentenceOf(source: string): string {
  const paragraph = source
    .split(/\n{2,}/)
    .find((part) => !/^(#|\||```|<|-|!)/.test(part.trim()) && part.trim() !== '')
  const text = (paragraph ?? '').replace(/\[([^\]]*)\]\([^)]*\)|\*\*/g, '$1').replace(/\s+/g, ' ')
  return /^.*?(?:\.(?= |$)|。|$)/.exec(text.trim())?.[0].replace(/[:：]$/, '') ?? ''
}
