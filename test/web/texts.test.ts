import { expect, test } from 'vitest'
import { textsOf } from '../../web/texts.ts'

const bracesIn = (text: string) => text.match(/\{\w+\}/g) ?? []

test('Chinese says all that English says, with the same values', () => {
  const [en, zh] = [textsOf('en-GB'), textsOf('zh-Hant-TW')]
  expect(zh).not.toBe(en)
  const own = ['wrongOne']
  for (const [name, text] of Object.entries(en)) {
    const other = zh[name as keyof typeof zh]
    expect(other, name).toMatch(/\p{Script=Han}/u)
    if (!own.includes(name)) expect(bracesIn(other).sort(), name).toEqual(bracesIn(text).sort())
  }
})

test('a language that is neither: English', () => {
  for (const tag of ['de', 'zhx', '', 'en']) expect(textsOf(tag)).toBe(textsOf('en'))
})
