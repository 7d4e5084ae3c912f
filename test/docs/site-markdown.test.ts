import type { MarkdownRenderer } from 'vitepress'
import { expect, test } from 'vitest'
import { hideReasons } from '../../site/markdown.ts'

/** Renders a page that has only the opening line of a code block. */
function renderInfo(info: string): string {
  const fence = (tokens: { info: string }[], index: number) => `<pre>${tokens[index]?.info}</pre>`
  const markdown = { renderer: { rules: { fence } } } as unknown as MarkdownRenderer
  hideReasons(markdown)
  const rule = markdown.renderer.rules.fence as unknown as typeof fence
  return rule([{ info }], 0)
}

test('the site shows a code block without the note that tells tests why they do not run it', () => {
  expect(renderInfo('sh no-run: needs a vendor account')).toBe('<pre>sh</pre>')
  expect(renderInfo('css examples/page.css')).toBe('<pre>css examples/page.css</pre>')
})
