/**
 * Forged passes, in the classes of Wycheproof's vectors for JSON Web Signatures. A vector is signed with a separate
 * key. So each is also combined with a real pass: its signature, payload or header replaces the real one.
 */
import { execFile } from 'node:child_process'
import { createHmac, createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { findForeign } from '../tools/foreign.ts'
import { passFor } from '../tools/pass.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const wycheproof = findForeign('wycheproof/json_web_signature.part.json')

test.skipIf(wycheproof.isMissing)(
  `401 vectors of Wycheproof, and a real pass with a part of each: neither the API nor the program of docs/passes.md accepts one${wycheproof.note}`,
  async () => {
    const { vectors } = JSON.parse(readFileSync(wycheproof.path, 'utf8')) as Vectors
    expect(vectors).toHaveLength(401)
    const postern = await startPostern({ policyFile: { policies: noLimits } })
    const real = await passFor(postern, '+8613800138000', 'signup')
    const forged = [...new Set(vectors.flatMap(({ jws }) => forgedWith(textOf(jws), real)))]
    expect(forged.length).toBeGreaterThan(1_000)
    expect(forged).not.toContain(real)

    await expectRefused(postern, forged)
    const { stdout } = await promisify(execFile)(
      'node',
      ['examples/passes/verify.mjs', ...forged, real],
      {
        cwd: repositoryRoot,
        env: { ...process.env, POSTERN_URL: postern.url, APP: 'default' },
        maxBuffer: 10_000_000,
      },
    )
    const verdicts = stdout.trim().split(/\n(?=good |refused: )/)
    expect(verdicts.filter((verdict) => verdict.startsWith('good'))).toHaveLength(1)
    expect(verdicts).toHaveLength(forged.length + 1)
    expect(verdicts.at(-1)).toMatch(/^good /)
    expect((await verify(postern, real)).body).toMatchObject({ valid: true })
  },
)

test('forged with Postern’s public key: as an HMAC secret, under `none`, with a key in the header → invalid', async () => {
  const postern = await startPostern({ policyFile: { policies: noLimits } })
  const real = await passFor(postern, '+8613800138000', 'signup')
  const [header = '', payload = '', signature = ''] = real.split('.')
  const { keys } = (await postern.get('/.well-known/jwks.json', { key: null })).body
  const key = createPublicKey({ key: keys[0], format: 'jwk' })
  const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString())
  const secrets = [
    key.export({ type: 'spki', format: 'pem' }),
    key.export({ type: 'spki', format: 'der' }),
    JSON.stringify(keys[0]),
    Buffer.concat([Buffer.from(keys[0].x, 'base64url'), Buffer.from(keys[0].y, 'base64url')]),
  ]
  const withHeader = (made: object) => `${encoded(made)}.${payload}`
  const byHmac = secrets.flatMap((secret) =>
    ['HS256', 'ES256'].map((alg) => {
      const signed = withHeader({ alg, kid, typ: 'JWT' })
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    }),
  )
  const unsigned = ['none', 'None', 'NONE', ''].flatMap((alg) =>
    ['', signature].map((end) => `${withHeader({ alg, kid })}.${end}`),
  )
  const stranger = await generateKeyPair('ES256')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const jwk = await exportJWK(stranger.publicKey)
  const ownKeys = await Promise.all(
    [{ jwk }, { jwk, kid }, { jku: 'https://attacker.test/jwks.json', kid }, { kid }, {}].map(
      (more) =>
        new SignJWT(claims).setProtectedHeader({ alg: 'ES256', ...more }).sign(stranger.privateKey),
    ),
  )
  const critical = [
    { alg: 'ES256', kid, crit: ['b64'], b64: false },
    { alg: 'ES256', kid, crit: [] },
  ]
  await expectRefused(postern, [
    ...byHmac,
    ...unsigned,
    ...ownKeys,
    ...critical.map((made) => `${withHeader(made)}.${signature}`),
    JSON.stringify({ protected: header, payload, signature }),
    ...[`${real}=`, `${real}.`, ` ${real}`, real.replace('.', '..')],
  ])
  expect((await verify(postern, real)).body).toMatchObject({ valid: true })
})

interface Vectors {
  vectors: { jws: unknown }[]
}

type Running = Awaited<ReturnType<typeof startPostern>>

const textOf = (jws: unknown) => (typeof jws === 'string' ? jws : JSON.stringify(jws))
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A text with NUL cannot be an argument of a program. */
function forgedWith(vector: string, real: string): string[] {
  const [header, payload, signature] = real.split('.')
  const [otherHeader = '', otherPayload = '', otherSignature = ''] = vector.split('.')
  return [
    vector,
    `${header}.${payload}.${otherSignature}`,
    `${header}.${otherPayload}.${signature}`,
    `${otherHeader}.${payload}.${signature}`,
    `${header}.${otherPayload}.${otherSignature}`,
  ]
}

const verify = ({ post }: Running, pass: string) => post('/v1/passes/verify', { pass })

/** No answer is `valid`. A text that cannot be a pass is a bad request. */
async function expectRefused(postern: Running, passes: readonly string[]): Promise<void> {
  for (let from = 0; from < passes.length; from += 50) {
    const batch = passes.slice(from, from + 50)
    const replies = await Promise.all(batch.map((pass) => verify(postern, pass)))
    for (const [index, { status, body }] of replies.entries()) {
      const isRefused =
        status === 400 || (status === 200 && body.valid === false && body.reason === 'invalid')
      expect(isRefused, `${batch[index]} → ${status} ${JSON.stringify(body)}`).toBe(true)
    }
  }
}
