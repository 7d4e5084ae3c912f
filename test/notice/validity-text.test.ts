import { expect, test } from 'vitest'
import { createValidityText } from '../../src/notice/validity-text.ts'

test.each([
  [300_000, '5 minutes', '5 分钟'],
  [60_000, '1 minute', '1 分钟'],
  [20_000, '20 seconds', '20 秒钟'],
  [90_000, '90 seconds', '90 秒钟'],
  [120_000, '2 minutes', '2 分钟'],
  [150_000, '2 minutes', '2 分钟'],
  [3_600_000, '1 hour', '1 小时'],
  [86_400_000, '24 hours', '24 小时'],
  [130_500, '2 minutes', '2 分钟'],
  [500, '1 second', '1 秒钟'],
])('%d ms: %s', (ttlMs, en, zh) => {
  const validity = createValidityText(ttlMs)
  expect([validity('en'), validity('zh'), validity('en')]).toEqual([en, zh, en])
})

test.each(['fr-CA', 'fr', 'de', 'pl', 'sv', 'no', 'nb', 'fi'])(
  '%s: only plain spaces',
  (locale) => {
    for (const ttlMs of [300_000, 20_000, 86_400_000, 3_600_000]) {
      expect(createValidityText(ttlMs)(locale)).toMatch(/^\d+ [\p{L}.]+$/u)
    }
  },
)
