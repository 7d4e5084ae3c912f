import { expect, test } from 'vitest'
import { createSealedTexts } from '../../src/console/sealed-text.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'

const secretOf = (letter: string) => createSecrets(letter.repeat(32))

test('a text opens where it was sealed, and for no other use or secret', () => {
  const one = createSealedTexts(secretOf('a'), 'notices')
  const sealed = one.seal('2026 at +8613800138000')
  expect(one.open(sealed)).toBe('2026 at +8613800138000')
  expect(sealed).toMatch(/^[\w-]+$/)
  expect(createSealedTexts(secretOf('a'), 'events').open(sealed)).toBe(undefined)
  expect(createSealedTexts(secretOf('b'), 'notices').open(sealed)).toBe(undefined)
})

test.each([undefined, '', 'x', '%00', '9'.repeat(100_000)])('%j opens nothing', (made) => {
  expect(createSealedTexts(secretOf('a'), 'notices').open(made)).toBe(undefined)
})
