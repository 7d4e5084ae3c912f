import { expect, test } from 'vitest'
import { createSiteverify } from '../../src/captcha/siteverify.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { startSiteverify } from '../tools/siteverify.ts'

const asked = {
  app: 'shop',
  keyId: 'key',
  origins: ['https://shop.example', 'http://localhost:8080'],
}

async function openKind(kind: 'turnstile' | 'hcaptcha' = 'turnstile', secret = 'the secret') {
  const far = await startSiteverify('the secret')
  const challenge = closeLater(createSiteverify({ kind, siteKey: 'site', secret, url: far.url }))
  return { far, challenge }
}

test.each(['turnstile', 'hcaptcha'] as const)(
  '%s: offers its site key, and takes the vendor’s word for a token',
  async (kind) => {
    const { far, challenge } = await openKind(kind)
    expect(await challenge.offer(asked, 8)).toEqual({ kind, siteKey: 'site' })
    expect(await challenge.prove(asked, 'good-1')).toBe(true)
    expect(await challenge.prove(asked, 'bad-1')).toBe(false)
    // No data of the visitor is sent to the vendor.
    expect(far.forms.map((form) => [...form.keys()])).toEqual(
      Array(2).fill(
        kind === 'hcaptcha' ? ['secret', 'response', 'sitekey'] : ['secret', 'response'],
      ),
    )
  },
)

test('a token that the vendor has seen before is wrong', async () => {
  const { challenge } = await openKind()
  expect(await challenge.prove(asked, 'good-1')).toBe(true)
  expect(await challenge.prove(asked, 'good-1')).toBe(false)
})

test.each([
  ['status 500', { status: 500, body: '{"success":true}' }],
  ['no JSON', { status: 200, body: '<html>' }],
  ['no object', { status: 200, body: 'true' }],
  ['no success', { status: 200, body: '{}' }],
  ['a success that is a text', { status: 200, body: '{"success":"true"}' }],
  ['codes that are no list', { status: 200, body: '{"success":true,"error-codes":"none"}' }],
  [
    'a fault of its own',
    { status: 200, body: '{"success":false,"error-codes":["internal-error"]}' },
  ],
  ['a broken connection', 'reset'],
  ['no answer', 'hang'],
] as const)('%s: unavailable within its deadline, never a pass', async (_, behave) => {
  const { far, challenge } = await openKind()
  far.behave = behave
  const startMs = performance.now()
  await expect(challenge.prove(asked, 'good-1')).rejects.toMatchObject({ part: 'challenge' })
  expect(performance.now() - startMs).toBeLessThan(15_000)
  far.behave = undefined
  expect(await challenge.prove(asked, 'good-1')).toBe(true)
})

test.each([
  ['turnstile', 'shop.example', true],
  ['turnstile', 'localhost', true],
  ['turnstile', 'evil.example', false],
  ['turnstile', 'shop.example.evil.example', false],
  ['turnstile', undefined, false],
  ['turnstile', 7, false],
  ['turnstile', 'not-provided', false],
  ['hcaptcha', 'shop.example', true],
  ['hcaptcha', 'evil.example', false],
  // The answer that their documentation describes, under load.
  ['hcaptcha', 'not-provided', true],
] as const)(
  '%s, solved on %s by a key of shop.example and localhost: %s',
  async (kind, hostname, isRight) => {
    const { far, challenge } = await openKind(kind)
    far.behave = { status: 200, body: JSON.stringify({ success: true, hostname }) }
    expect(await challenge.prove(asked, 'good-1')).toBe(isRight)
    expect(await challenge.prove({ ...asked, origins: [] }, 'good-1')).toBe(true)
  },
)

test('the site’s secret is wrong: unavailable, because no visitor is to blame', async () => {
  const { challenge } = await openKind('hcaptcha', 'another secret')
  await expect(challenge.prove(asked, 'good-1')).rejects.toThrow('invalid-input-secret')
})

test('nothing listens: unavailable', async () => {
  const url = 'http://127.0.0.1:9/siteverify'
  const challenge = createSiteverify({ kind: 'turnstile', siteKey: 's', secret: 's', url })
  releaseLater(() => challenge.close())
  await expect(challenge.prove(asked, 'good-1')).rejects.toMatchObject({ part: 'challenge' })
})

test('a token is identified by app and key, and is one word', async () => {
  const { challenge } = await openKind()
  const idOf = (of: typeof asked, token: string) => {
    const reading = challenge.read(of, token)
    return reading.kind === 'unproven' ? reading.id : expect.unreachable()
  }
  const ids = [
    idOf(asked, 'good'),
    idOf({ ...asked, app: 'bank' }, 'good'),
    idOf({ ...asked, keyId: 'other' }, 'good'),
    idOf(asked, 'good2'),
  ]
  expect(new Set(ids).size).toBe(4)
  for (const token of ['two words', 'line\nbreak', 'é', '\u0000']) {
    expect(challenge.read(asked, token)).toEqual({ kind: 'malformed' })
  }
})
