import { expect, test } from 'vitest'
import { languages } from '../../src/i18n/languages.ts'
import { bundled } from '../../web/bundled-texts.ts'
import { type TextName, textIn } from '../../web/texts.ts'

const names = Object.keys(languages.en.field) as TextName[]

test('every text in every language; none contains the sign that separates languages', () => {
  expect(bundled[0]).toBe('en')
  for (const [language, { field }] of Object.entries(languages)) {
    for (const name of names) expect(textIn(language, name)).toBe(field[name])
  }
})

test('a time to wait is one that is drawn again, or the time of day: no text counts minutes', () => {
  for (const { field } of Object.values(languages)) {
    for (const text of Object.values(field)) {
      expect(text).not.toMatch(/\b(min|minutes?|hours?|Minuten?|Stunden?)\b|分钟|小时/)
    }
  }
})

test('the language of a tag with its regions and scripts, English for the languages that are not there', () => {
  const name: TextName = 'send'
  for (const tag of ['zh', 'zh-CN', 'zh-Hant-TW']) expect(textIn(tag, name)).toBe('获取验证码')
  for (const tag of ['de', 'de-AT', 'de-CH-1996']) expect(textIn(tag, name)).toBe('Code senden')
  for (const tag of ['nds', 'zhx', '', 'en']) expect(textIn(tag, name)).toBe('Send code')
})
