import type { MarkdownRenderer } from 'vitepress'
import { expect, test } from 'vitest'
import { hideReasons } from '../../site/markdown.ts'
import { asMarkdown, firstSentenceOf } from '../../site/programs.ts'

/** Renders a page that has only the opening line of a code block. */
function renderInfo(info: string): string {
  const fence = (tokens: { info: string }[], index: number) => `<pre>${tokens[index]?.info}</pre>`
  const markdown = { renderer: { rules: { fence } } } as unknown as MarkdownRenderer
  hideReasons(markdown)
  const rule = markdown.renderer.rules.fence as unknown as typeof fence
  return rule([{ info }], 0)
}

test('the site shows a code block without the note for tests why they do not run it', () => {
  expect(renderInfo('sh no-run: needs a vendor account')).toBe('<pre>sh</pre>')
  expect(renderInfo('css examples/page.css')).toBe('<pre>css examples/page.css</pre>')
})

test('Markdown of a page: links lead to Markdown or the repository, and marks for tests and browsers are left out', () => {
  const source = [
    '<!-- tabs -->',
    '[a](http.md#calls) [b](../README.md) ![c](../images/c.png) [d](../../examples/a.js) [e](#here)',
    '[f](https://x.example/) [g](../decisions/)',
    '```sh no-run: needs an account',
    '[a](../README.md)',
    '```',
    '## Oman (OM) {#om}',
    '<a href="https://x.example/" rel="nofollow">2026</a>',
  ].join('\n')
  const blob = 'https://github.com/postern/postern/blob/main'
  expect(asMarkdown(source, 'guides/a.md').split('\n')).toEqual([
    `[a](http.md#calls) [b](../index.md) ![c](${blob}/docs/images/c.png) [d](${blob}/examples/a.js) [e](#here)`,
    '[f](https://x.example/) [g](../decisions/index.md)',
    '```sh',
    '[a](../README.md)',
    '```',
    '## Oman (OM)',
    '[2026](https://x.example/)',
  ])
})

test('a list of pages has the first sentence of each, without links', () => {
  expect(firstSentenceOf('# A\n\nOf [b](b.md) and c.md, **now**. More.')).toBe(
    'Of b and c.md, now.',
  )
  expect(firstSentenceOf('# A\n\n|a|\n|-|\n\n短信：“好”。下一句。')).toBe('短信：“好”。')
})
