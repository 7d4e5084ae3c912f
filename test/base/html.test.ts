import { expect, test } from 'vitest'
import { html } from '../../src/base/html.ts'

const hostile = `<script>alert("1")</script>&'`

test('text is escaped in content and in quoted attributes, of any parts', () => {
  expect(String(html`<p title="${hostile}">${hostile}</p>`)).toBe(
    '<p title="&#60;script&#62;alert(&#34;1&#34;)&#60;/script&#62;&#38;&#39;">&#60;script&#62;alert(&#34;1&#34;)&#60;/script&#62;&#38;&#39;</p>',
  )
})

test('what the tag made is put in as it is, also in lists', () => {
  const items = ['<a>', 'b'].map((text) => html`<li>${text}</li>`)
  expect(String(html`<ul>${items}</ul>`)).toBe('<ul><li>&#60;a&#62;</li><li>b</li></ul>')
})

test('nothing is put in for undefined, null and false; zero and the empty text are themselves', () => {
  expect(String(html`[${undefined}${null}${false}${''}${0}]`)).toBe('[0]')
})

test('an object that looks like HTML is none: its members are not trusted', () => {
  const looksLike = { toString: () => '<b>x</b>' } as unknown as string
  expect(String(html`${looksLike}`)).toBe('&#60;b&#62;x&#60;/b&#62;')
})
