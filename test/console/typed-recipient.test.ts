import { expect, test } from 'vitest'
import { typedRecipient } from '../../src/console/search-page.ts'

test.each([
  ['as it is', '+8613800138000', '+8613800138000'],
  ['spaces and dashes', ' +86 138-0013 8000 ', '+86138-00138000'],
  ['brackets around the country code, dots', '(+86) 138.0013.8000', '+8613800138000'],
  ['square brackets', '[+86] 13800138000', '+8613800138000'],
  ['no-break spaces', '+86\u00a0138\u202f0013\u00a08000', '+8613800138000'],
  ['marks of direction', '\u202a+8613800138000\u202c', '+8613800138000'],
  ['isolates', '\u2066+86 138 0013 8000\u2069', '+8613800138000'],
  ['an unseen space within', '+86138\u200b00138000\ufeff', '+8613800138000'],
  ['full-width', '＋８６（１３８）００１３８０００', '+8613800138000'],
  ['typographic dashes', '+86\u2011138\u20130013\u22128000', '+86-138-0013-8000'],
  ['a link to call', 'tel:+86-138-0013-8000', '+86-138-0013-8000'],
  ['a link to write', 'MAILTO:ada@example.com', 'ada@example.com'],
  ['a wrapped address', '<ada@example.com>', 'ada@example.com'],
  ['a wrapped link', '<mailto:ada@example.com>', 'ada@example.com'],
  ['an address keeps its dots', 'ada.b@mail.example.com', 'ada.b@mail.example.com'],
  ['a full-width @', 'ada＠example.com', 'ada@example.com'],
  ['an id', ' 019AA000-0000-7000-8000-000000000000\u200b', '019AA000-0000-7000-8000-000000000000'],
  ['two addresses stay two', 'a@example.com, b@example.com', 'a@example.com, b@example.com'],
  ['markup stays markup', '<script>alert(1)</script>', '<script>alert(1)</script>'],
  ['nothing', ' \u200b ', ''],
])('%s: %j → %j', (_, text, cleaned) => {
  expect(typedRecipient(text)).toBe(cleaned)
})
