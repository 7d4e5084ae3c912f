import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { MarkdownRenderer } from 'vitepress'
import { expect, test } from 'vitest'
import { hideReasons } from '../../site/markdown.ts'
import { docsPages, fencesOf } from '../tools/markdown.ts'
import { readSource, repositoryRoot } from '../tools/source-files.ts'

/** Renders the opening line of a code block, as all that there is. */
function renderInfo(info: string): string {
  const fence = (tokens: { info: string }[], index: number) => `<pre>${tokens[index]?.info}</pre>`
  const markdown = { renderer: { rules: { fence } } } as unknown as MarkdownRenderer
  hideReasons(markdown)
  const rule = markdown.renderer.rules.fence as unknown as typeof fence
  return rule([{ info }], 0)
}

test('the site shows a code block without the note that tells tests why they do not run it', () => {
  expect(renderInfo('sh no-run: needs a vendor account')).toBe('<pre>sh</pre>')
  expect(renderInfo('html my-page.html')).toBe('<pre>html my-page.html</pre>')
})

test('a file that a reader is to write is named in the words above its block: readers do not see its opening line', () => {
  // Files of the repository are shown under their path, too.
  const named = docsPages
    .flatMap(fencesOf)
    .filter(({ file }) => file && !existsSync(join(repositoryRoot, file)))
  expect(named.length).toBeGreaterThan(0)
  for (const { page, line, file } of named) {
    const above = readSource(page)
      .split('\n')
      .slice(Math.max(0, line - 4), line - 1)
      .join('\n')
    expect(above, `${page}:${line}`).toContain(`\`${file}\``)
  }
})
