import { expect, test } from 'vitest'
import type { Message } from '../../src/providers/provider.ts'
import { findVendorTemplate } from '../../src/providers/vendor-templates.ts'

test.each([
  ['zh-CN', ['zh', 'en'], 'zh'],
  ['zh-TW', ['zh', 'en'], undefined],
  ['zh-Hant', ['zh-CN', 'zh-HK'], 'zh-HK'],
  ['zh-HK', ['zh', 'zh-TW'], 'zh-TW'],
  ['sr-Latn', ['sr'], undefined],
  ['en-GB', ['en-US'], 'en-US'],
  ['de', ['en'], undefined],
])(
  'findVendorTemplate: a message in %s with entries for %j → %s, never in another script',
  (locale, entries, found) => {
    const templates = { captcha: Object.fromEntries(entries.map((name) => [name, name])) }
    const message = { template: 'captcha', locale } as Message
    expect(findVendorTemplate(templates, message)).toBe(found)
  },
)
