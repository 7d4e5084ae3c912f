import { expect, test } from 'vitest'
import { type TextName, textIn, texts } from '../../web/texts.ts'

const bracesIn = (text: string) => text.match(/\{\w+\}/g) ?? []

test('Chinese says all that English says, with the same values', () => {
  const own = ['wrongOne']
  for (const [name, [english, chinese]] of Object.entries(texts)) {
    expect(chinese, name).toMatch(/\p{Script=Han}/u)
    expect(english, name).not.toMatch(/\p{Script=Han}/u)
    if (!own.includes(name))
      expect(bracesIn(chinese).sort(), name).toEqual(bracesIn(english).sort())
  }
})

test('a time to wait is one that is drawn again, or the time of day: no text counts minutes', () => {
  for (const pair of Object.values(texts)) {
    for (const text of pair) expect(text).not.toMatch(/\b(min|minutes?|hours?)\b|分钟|小时/)
  }
})

test('Chinese for every Chinese language, English for the others', () => {
  const name: TextName = 'send'
  for (const tag of ['zh', 'zh-CN', 'zh-Hant-TW']) expect(textIn(tag, name)).toBe('获取验证码')
  for (const tag of ['de', 'zhx', '', 'en']) expect(textIn(tag, name)).toBe('Send code')
})
