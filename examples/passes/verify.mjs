/**
 * Checks passes without a call of Postern: `POSTERN_URL=http://localhost:3000 APP=default node verify.mjs PASS…`.
 * See docs/passes.md. The package `jose` has to be installed.
 */
import { createRemoteJWKSet, jwtVerify } from 'jose'

const { POSTERN_URL, APP } = process.env

// #region verify
const keys = createRemoteJWKSet(new URL(`${POSTERN_URL}/.well-known/jwks.json`))
const expected = {
  issuer: 'postern',
  audience: APP,
  algorithms: ['ES256'],
  requiredClaims: ['exp', 'jti'],
}

async function verify(pass) {
  const { payload } = await jwtVerify(pass, keys, expected)
  if (payload.scene !== 'signup' || !rememberOnce(payload.jti)) throw new Error('not this pass')
  return payload
}
// #endregion verify

/** Replace it by a table with a unique column that keeps each id for five minutes. */
const used = new Set()
const rememberOnce = (id) => !used.has(id) && used.add(id)

for (const pass of process.argv.slice(2)) {
  const told = await verify(pass).then(
    ({ sub }) => `good ${sub}`,
    (error) => `refused: ${error.message}`,
  )
  console.log(told)
}
