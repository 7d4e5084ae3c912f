import { expect, test, vi } from 'vitest'
import { timeInWords } from '../../src/base/time-in-words.ts'

test.each([
  [42_000, '42 seconds', '42 秒钟', '42 Sekunden'],
  [900_000, '15 minutes', '15 分钟', '15 Minuten'],
  [1, '1 second', '1 秒钟', '1 Sekunde'],
])('timeInWords: %d ms in three languages → %s, %s, %s', (ms, en, zh, de) => {
  expect(['en', 'zh', 'de'].map((language) => timeInWords(ms, language))).toEqual([en, zh, de])
})

test('timeInWords: a second time in the same unit and language → no formatter is made, which costs more than a whole refusal', () => {
  timeInWords(42_000, 'en')
  const made = vi.spyOn(Intl, 'NumberFormat')
  expect(timeInWords(43_000, 'en')).toBe('43 seconds')
  expect(made).not.toHaveBeenCalled()
})
