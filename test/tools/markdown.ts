/** The parts of the Markdown pages: code blocks, headings, links. */
import { githubSlug } from '../../site/github-slug.ts'
import { notRunReason } from '../../site/markdown.ts'
import { findFiles, readSource } from './source-files.ts'

/** Below the repository, like `docs/http.md`. Without the pages that the site makes from the code. */
export const docsPages = findFiles('docs/**/*.md').filter((page) => !page.includes('['))

export interface Fence {
  readonly page: string
  /** The line of its opening. */
  readonly line: number
  readonly lastLine: number
  /** Empty for blocks that are only shown: output, a drawing. */
  readonly language: string
  /** The file of the repository that it shows, or a region of it: `examples/plain-form/server.mjs#pass`. */
  readonly file: string | undefined
  /** Why it is not run. */
  readonly reason: string | undefined
  readonly text: string
}

export const nameOf = ({ page, line }: Fence) => `${page}:${line}`

export function fencesOf(page: string): Fence[] {
  const fences: Fence[] = []
  let open: { indent: string; info: string; line: number; lines: string[] } | undefined
  for (const [index, line] of readSource(page).split('\n').entries()) {
    const [, indent = '', info = ''] = /^( *)```(.*)$/.exec(line) ?? [undefined]
    const isFence = /^ *```/.test(line)
    if (!open) {
      if (isFence) open = { indent, info, line: index + 1, lines: [] }
    } else if (!isFence) open.lines.push(line.slice(open.indent.length))
    else {
      const [language = '', file] = open.info.replace(notRunReason, '').trim().split(/\s+/)
      const reason = notRunReason.exec(open.info)?.[1]
      const text = `${open.lines.join('\n')}\n`
      fences.push({ page, line: open.line, lastLine: index + 1, language, file, reason, text })
      open = undefined
    }
  }
  if (open) throw new Error(`${page}:${open.line}: this code block has no end`)
  return fences
}

/**
 * The content of a block that names this file or region. Regions are marked as for VitePress and editors: `// #region
 * pass`.
 */
export function textOf(file: string): string {
  const [path = '', region] = file.split('#')
  if (region === undefined) return readSource(path)
  const lines = readSource(path).split('\n')
  const [from = -1, to = -1] = ['region', 'endregion'].map((mark) =>
    lines.findIndex((line) => line.match(/#((?:end)?region \S+)/)?.[1] === `${mark} ${region}`),
  )
  if (from < 0 || to < from) throw new Error(`${path} has no region ${region}`)
  const inside = lines.slice(from + 1, to)
  while (inside.at(-1) === '') inside.pop()
  const indents = inside.filter(Boolean).map((line) => line.search(/\S/))
  return inside.map((line) => `${line.slice(Math.min(...indents))}\n`).join('')
}

const withoutFences = (markdown: string) => markdown.replace(/^ *```[\s\S]*?^ *```$/gm, '')

/** The anchors of a page's headings, as GitHub makes them. The second one of a name gets a number. */
export function anchorsOf(markdown: string): string[] {
  const seen = new Map<string, number>()
  return [...withoutFences(markdown).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) => {
    const slug = githubSlug(title)
    const times = seen.get(slug) ?? 0
    seen.set(slug, times + 1)
    return times === 0 ? slug : `${slug}-${times}`
  })
}

/** Targets of links within the repository: a path, an anchor, or both. */
export const linksOf = (markdown: string): { path: string; anchor: string | undefined }[] =>
  [...withoutFences(markdown).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].map(
    ([, path = '', anchor]) => ({ path, anchor }),
  )
