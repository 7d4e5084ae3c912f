import { expect, test } from 'vitest'
import { mayTryAgain, retryPolicies, unknowns } from '../../src/delivery/retry.ts'
import type { Attempt, AttemptOutcome } from '../../src/notice/states.ts'

const policy = { tries: 3, unknownRetries: 1, longestRetryMs: 10_000, queryRetryMs: 5_000 }

function attempts(...outcomes: (AttemptOutcome | [string | null, AttemptOutcome])[]): Attempt[] {
  return outcomes.map((one) => {
    const [provider, outcome] = Array.isArray(one) ? one : ['a', one]
    return { provider, outcome, at: '2026-11-21T00:00:00.000Z', durationMs: 1 }
  })
}

test.for([
  ['nothing tried', [], true],
  ['answers about the message below the budget', ['rejected', 'rejected'], true],
  ['answers about the message at the budget', ['rejected', 'rejected', 'rejected'], false],
  [
    'a far end that is away uses up nothing (I29)',
    Array<AttemptOutcome>(20).fill('unavailable'),
    true,
  ],
  [
    'a recipient that is put off uses up nothing (F37)',
    Array<AttemptOutcome>(20).fill('postponed'),
    true,
  ],
  ['pauses use up nothing (F17)', Array<AttemptOutcome>(20).fill('throttled'), true],
  ['one unknown: once more', ['unknown'], true],
  ['two unknown: no more', ['unknown', 'unknown'], false],
  ['an unknown that was settled is none', ['unknown', 'not_taken', 'unknown'], true],
] as const)('mayTryAgain: %s', ([, outcomes, expected]) => {
  expect(mayTryAgain(attempts(...outcomes), policy)).toBe(expected)
})

test("unknowns: a provider's word settles its own latest try, not another's", () => {
  const open = unknowns(
    attempts(['a', 'unknown'], ['b', 'unknown'], ['a', 'not_taken'], [null, 'unknown']),
  )
  expect(open.map(({ provider }) => provider)).toEqual(['b', null])
})

test('retryPolicies: a code that may have arrived is repeated once, a notice as the policy file allows', () => {
  const { captcha, notice } = retryPolicies({ tries: 4, unknownRetries: 3 })
  expect(captcha).toMatchObject({ tries: 4, unknownRetries: 1 })
  expect(notice).toMatchObject({ tries: 4, unknownRetries: 3 })
})
