import { createChallenge, verifySolution } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import { expect, test, vi } from 'vitest'
import { solveChallenge, UnsolvableError } from '../../web/proof-of-work.ts'

const secrets = { hmacSignatureSecret: 'a', hmacKeySignatureSecret: 'b' }
const offer = (counter: number, algorithm = 'PBKDF2/SHA-256', keyLength = 32) =>
  createChallenge({ algorithm, cost: 20, counter, keyLength, deriveKey, ...secrets })
const solve = (challenge: Awaited<ReturnType<typeof offer>>, signal?: AbortSignal) =>
  solveChallenge(challenge as Parameters<typeof solveChallenge>[0], signal)

test.each([
  [0, 'PBKDF2/SHA-256', 32],
  [1, 'PBKDF2/SHA-256', 32],
  [300, 'PBKDF2/SHA-256', 32],
  [70_000 % 997, 'PBKDF2/SHA-512', 64],
  [40, 'PBKDF2/SHA-384', 48],
])(
  'counter %i by %s with keys of %i bytes: what Postern solves altcha-lib accepts',
  async (...of) => {
    const challenge = await offer(...of)
    const answer = JSON.parse(Buffer.from(await solve(challenge), 'base64').toString())
    expect(answer.challenge).toEqual(challenge)
    expect(answer.solution.counter).toBe(of[0])
    const { solution } = answer
    // By the signature of the key, and by deriving it again.
    for (const keys of [secrets, { hmacSignatureSecret: 'a' }]) {
      const { verified } = await verifySolution({ challenge, solution, deriveKey, ...keys })
      expect(verified).toBe(true)
    }
  },
)

test('a challenge without a known counter, by a prefix of zeros', async () => {
  const challenge = await createChallenge({
    algorithm: 'PBKDF2/SHA-256',
    cost: 1,
    keyPrefix: '00',
    deriveKey,
    ...secrets,
  })
  const { solution } = JSON.parse(Buffer.from(await solve(challenge), 'base64').toString())
  const { verified } = await verifySolution({ challenge, solution, deriveKey, ...secrets })
  expect(verified).toBe(true)
})

test('an algorithm that no browser has: refused at once', async () => {
  const challenge = await offer(1)
  const other = { ...challenge, parameters: { ...challenge.parameters, algorithm: 'ARGON2ID' } }
  await expect(solve(other)).rejects.toBeInstanceOf(UnsolvableError)
})

test('a page without TLS, where browsers derive no keys: refused at once', async () => {
  const challenge = await offer(1)
  vi.stubGlobal('crypto', {})
  try {
    await expect(solve(challenge)).rejects.toBeInstanceOf(UnsolvableError)
  } finally {
    vi.unstubAllGlobals()
  }
})

test('given up: the work ends', async () => {
  const challenge = await offer(1)
  const endless = {
    ...challenge,
    parameters: { ...challenge.parameters, keyPrefix: 'f'.repeat(32) },
  }
  await expect(solve(endless, AbortSignal.timeout(50))).rejects.toThrow(/timeout/i)
})
