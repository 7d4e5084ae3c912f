import { expect, test } from 'vitest'
import { readResult } from '../../src/delivery/read-result.ts'

const message = { to: '+8613800138000', text: 'Your code is 004217', variables: { code: '004217' } }
const detail = 'acme 42'
const none = 'the detail cannot be stored'

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
  // The acceptance counts even if its id cannot be stored.
  [{ kind: 'accepted', messageId: 'a\nb' }, { kind: 'accepted' }],
  [{ kind: 'accepted', messageId: 7, more: true }, { kind: 'accepted' }],
  [{ kind: 'rejected' }, { kind: 'rejected', detail: none }],
  // Rows, logs and operators must not get texts that are for the recipient only.
  [
    { kind: 'rejected', detail: 'no such number: 8613800138000, 004217' },
    { kind: 'rejected', detail: 'no such number: ***, ***' },
  ],
  [
    { kind: 'throttled', detail: `${'x'.repeat(195)} 13800138000`, retryAfterMs: 5_000 },
    { kind: 'throttled', detail: `${'x'.repeat(195)} ***`, retryAfterMs: 5_000 },
  ],
  // PostgreSQL stores no NUL and no half of a character.
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
  // If a carrier answers "at once", the worker must not call it in a loop until the message expires.
  [
    { kind: 'postponed', detail, retryAfterMs: 0 },
    { kind: 'postponed', detail, retryAfterMs: 1_000 },
  ],
  // The wait is wrong (an HTTP date read as a number is NaN), but the message was surely not accepted.
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
