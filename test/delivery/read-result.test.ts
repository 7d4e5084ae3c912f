import { expect, test } from 'vitest'
import { readResult } from '../../src/delivery/read-result.ts'

const message = { to: '+8613800138000', text: 'Your code is 004217', variables: { code: '004217' } }
const detail = 'acme 42'
const none = 'the detail can not be stored'

test.each([
  { kind: 'accepted' },
  { kind: 'accepted', messageId: 'm-1' },
  ...['rejected', 'invalid_recipient', 'postponed', 'unavailable', 'unknown'].map((kind) => ({
    kind,
    detail,
  })),
  { kind: 'postponed', detail, retryAfterMs: 5_000 },
  { kind: 'throttled', detail, retryAfterMs: 5_000 },
])('%j is kept as it is', (given) => {
  expect(readResult(given, message)).toEqual(given)
})

test.each([
  // That it was taken is worth more than its id.
  [{ kind: 'accepted', messageId: 'a\nb' }, { kind: 'accepted' }],
  [{ kind: 'accepted', messageId: 7, more: true }, { kind: 'accepted' }],
  [{ kind: 'rejected' }, { kind: 'rejected', detail: none }],
  // Rows, logs and operators must not get what only the recipient may read.
  [
    { kind: 'rejected', detail: 'no such number: 8613800138000, 004217' },
    { kind: 'rejected', detail: 'no such number: ***, ***' },
  ],
  [
    { kind: 'throttled', detail: `${'x'.repeat(195)} 13800138000`, retryAfterMs: 5_000 },
    { kind: 'throttled', detail: `${'x'.repeat(195)} ***`, retryAfterMs: 5_000 },
  ],
  // PostgreSQL keeps no NUL, and no half of a character.
  [
    { kind: 'rejected', detail: 'a\u0000b' },
    { kind: 'rejected', detail: none },
  ],
  [
    { kind: 'unknown', detail: '\ud800' },
    { kind: 'unknown', detail: none },
  ],
  [
    { kind: 'unknown', detail: 'x'.repeat(1_000_000) },
    { kind: 'unknown', detail: 'x'.repeat(200) },
  ],
  [
    { kind: 'throttled', detail, retryAfterMs: Number.POSITIVE_INFINITY },
    { kind: 'throttled', detail, retryAfterMs: 86_400_000 },
  ],
  [
    { kind: 'throttled', detail, retryAfterMs: -1 },
    { kind: 'throttled', detail, retryAfterMs: 1_000 },
  ],
  // A carrier that says "at once" would be called in a loop until the end of the message's time.
  [
    { kind: 'postponed', detail, retryAfterMs: 0 },
    { kind: 'postponed', detail, retryAfterMs: 1_000 },
  ],
  // It was not taken for sure, whatever the wait: an HTTP date read as a number is NaN.
  [
    { kind: 'throttled', detail, retryAfterMs: Number.NaN },
    { kind: 'throttled', detail, retryAfterMs: 10_000 },
  ],
  [
    { kind: 'throttled', detail },
    { kind: 'throttled', detail, retryAfterMs: 10_000 },
  ],
  [
    { kind: 'postponed', detail, retryAfterMs: 'soon' },
    { kind: 'postponed', detail },
  ],
])('of %j only what can be kept is', (given, expected) => {
  expect(readResult(given, message)).toEqual(expected)
})

test.each([
  undefined,
  null,
  true,
  'accepted',
  [],
  {},
  { kind: 'ok' },
  { kind: 'not_taken', detail },
  { kind: 'constructor', detail },
])('%j is no result', (given) => {
  expect(readResult(given, message)).toBeUndefined()
})
