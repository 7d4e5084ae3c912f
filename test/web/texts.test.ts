import { expect, test } from 'vitest'
import { languages } from '../../src/i18n/languages.ts'

test('a time to wait is one that is drawn again, or the time of day: no text counts minutes', () => {
  for (const { field } of Object.values(languages)) {
    for (const text of Object.values(field)) {
      expect(text).not.toMatch(/\b(min|minutes?|hours?|Minuten?|Stunden?)\b|分钟|小时/)
    }
  }
})
