/** The signatures of identity products to the millisecond, which a running API cannot show. */
import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import type { HookKind } from '../../src/compat/hooks/hook-kind.ts'
import { logto } from '../../src/compat/hooks/logto.ts'
import { supabase } from '../../src/compat/hooks/supabase.ts'
import { zitadel } from '../../src/compat/hooks/zitadel.ts'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'

const whsec = `whsec_${Buffer.alloc(24, 1).toString('base64')}`
const key = 'a signing key'
const rawBody = Buffer.from('{"a":1}')
const signedAtMs = 1_764_000_000_000

const seconds = signedAtMs / 1_000
const v1 = createHmac('sha256', key).update(`${seconds}.`).update(rawBody).digest('hex')
const kinds: [string, HookKind, string, Record<string, string>][] = [
  ['Supabase', supabase, `v1,${whsec}`, { ...signWebhook(whsec, 'id', signedAtMs, rawBody) }],
  ['Zitadel', zitadel, key, { 'zitadel-signature': `t=${seconds},v1=${v1}` }],
]

test.each(kinds)(
  '%s: a signature is valid for 300 s in both directions, and no longer',
  (_, kind, secret, headers) => {
    const { mayBeGenuine, isGenuine } = kind.create(secret)
    for (const [awayMs, isValid] of [
      [0, true],
      [300_000, true],
      [-300_000, true],
      [300_001, false],
      [-300_001, false],
    ] as const) {
      const head = { headers, receivedAt: signedAtMs + awayMs }
      expect(mayBeGenuine(head)).toBe(isValid)
      expect(isGenuine({ ...head, rawBody })).toBe(isValid)
      expect(isGenuine({ ...head, rawBody: Buffer.from('{"a":2}') })).toBe(false)
    }
  },
)

test.each([
  [`v1,${whsec}`, true],
  [whsec, true],
  [`v1,${whsec}|v1,${whsec}`, true],
  [`v1,${whsec}, v1,${whsec}`, true],
  [`v1,${whsec}|`, false],
  [`v1,${whsec}|v1,whsec_`, false],
  ['v1,whsec_c2hvcnQ=', false],
  ['v1,whsec_<base64>', false],
  ['', false],
])('the secret %j of Supabase: usable %j', (secret, isUsable) => {
  expect(supabase.findMistake(secret) === undefined).toBe(isUsable)
})

test('a secret of Zitadel or Logto has 8 characters or more', () => {
  for (const { findMistake } of [zitadel, logto]) {
    expect([findMistake('1234567') === undefined, findMistake('12345678')]).toEqual([
      false,
      undefined,
    ])
  }
})
