/** Changes of pages that are written for GitHub into pages of the site. */
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import type { MarkdownRenderer } from 'vitepress'

const { repository } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { repository: { url: string } }
const repositoryUrl = repository.url.replace(/^git\+/, '').replace(/\.git$/, '')

/**
 * A file outside of docs/ is no page of the site, so its link leads to the repository. A README is the index of its
 * folder.
 */
export function mendLinks(markdown: MarkdownRenderer): void {
  const { link_open: render } = markdown.renderer.rules
  markdown.renderer.rules.link_open = (tokens, index, options, env, self) => {
    const token = tokens[index]
    const href = token?.attrGet('href') ?? ''
    if (token && !/^([a-z]+:|\/|#)/.test(href))
      token.attrSet('href', onSite(href, env.relativePath))
    return render?.(tokens, index, options, env, self) ?? self.renderToken(tokens, index, options)
  }
}

/** `index`: the name of a folder's page in links, instead of GitHub's `README.md`. */
export function onSite(href: string, page: string, index = './'): string {
  const [path = '', anchor] = href.split('#')
  const target = posix.normalize(posix.join('docs', posix.dirname(page), path))
  const isPage = path === '' || (target.startsWith('docs/') && /(\.md|\/)$/.test(target))
  const found = isPage
    ? path.replace(/(^|\/)README\.md$/, `$1${index}`)
    : `${repositoryUrl}/blob/main/${target}`
  return anchor === undefined ? found : `${found}#${anchor}`
}

/** The reason why tests do not run a code block follows its language: `sh no-run: needs a vendor account`. */
export const notRunReason = /\s+no-run:\s*(\S.*)$/

/** The reason is a note for developers. GitHub does not show it either. */
export function hideReasons(markdown: MarkdownRenderer): void {
  const render = markdown.renderer.rules.fence
  markdown.renderer.rules.fence = (tokens, index, options, env, self) => {
    const token = tokens[index]
    if (token) token.info = token.info.replace(notRunReason, '')
    return render?.(tokens, index, options, env, self) ?? ''
  }
}

/** `{{name}}` in code is a variable of a message. Without this, Vue would put its own value there: nothing. */
export function showBraces(markdown: MarkdownRenderer): void {
  const { code_inline: render } = markdown.renderer.rules
  markdown.renderer.rules.code_inline = (tokens, index, options, env, self) => {
    tokens[index]?.attrSet('v-pre', '')
    return render?.(tokens, index, options, env, self) ?? ''
  }
}

/** Marks of the first and last line of code blocks that show the same in several languages. GitHub hides them. */
export const tabsMark = /^<!-- (end of )?tabs -->\n?$/

const languageNames: Readonly<Record<string, string>> = {
  ...{ java: 'Java', python: 'Python', php: 'PHP', go: 'Go', ruby: 'Ruby', csharp: 'C#' },
}

/** Between the two marks, each code block is a tab with the name of its language. */
export function makeTabs(markdown: MarkdownRenderer): void {
  markdown.core.ruler.after('block', 'tabs', ({ tokens }) => {
    let isInTabs = false
    for (const token of tokens) {
      const mark = token.type === 'html_block' ? tabsMark.exec(token.content) : null
      if (mark) {
        isInTabs = mark[1] === undefined
        token.type = `container_code-group_${isInTabs ? 'open' : 'close'}`
        token.nesting = isInTabs ? 1 : -1
      } else if (isInTabs && token.type === 'fence') {
        const [language = ''] = token.info.split(' ')
        token.info += ` [${languageNames[language] ?? language}]`
      }
    }
  })
}

/**
 * A table that is wider than a phone scrolls, so the keyboard must reach it. A column without a name has no header
 * cell, because a screen reader would announce it as empty.
 */
export function mendTables(markdown: MarkdownRenderer): void {
  const { rules } = markdown.renderer
  rules.table_open = () => '<div class="wide" tabindex="0"><table>\n'
  rules.table_close = () => '</table></div>\n'
  markdown.core.ruler.push('unnamed columns', ({ tokens }) => {
    for (const [index, { type, content }] of tokens.entries()) {
      const [before, after] = [tokens[index - 1], tokens[index + 1]]
      if (type !== 'inline' || content !== '' || before?.type !== 'th_open' || !after) continue
      before.tag = after.tag = 'td'
    }
  })
}

/**
 * The site's first page has a hero, which would repeat the title and the first paragraph of GitHub's page. They are
 * still rendered, because VitePress finds the links for its check in this way.
 */
export function dropTitleOfHome(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('title of home', ({ env, md, tokens }) => {
    if (!/^(zh\/)?index\.md$/.test(env.relativePath)) return
    const paragraphEnd = tokens.findIndex(({ type }) => type === 'paragraph_close')
    md.renderer.render(tokens.splice(0, 1 + paragraphEnd), md.options, env)
  })
}
