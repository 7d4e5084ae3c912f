/**
 * A right code, then a passkey, then sign-in without a message. See docs/guides/passkey.md.
 *
 *   npm install && PUBLISHABLE_KEY=ppk_… SECRET_KEY=psk_… node server.mjs
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server'

const { POSTERN_URL = 'http://localhost:3000', PUBLISHABLE_KEY, SECRET_KEY } = process.env
const { PORT = '8085', ORIGIN = `http://localhost:${PORT}` } = process.env
if (!PUBLISHABLE_KEY || !SECRET_KEY) throw new Error('set PUBLISHABLE_KEY and SECRET_KEY')

// #region server
/** The domain to which passkeys belong. A false page on another domain gets nothing. */
const rpID = new URL(ORIGIN).hostname
const fiveMinutesMs = 300_000
/** EdDSA, ES256, RS256. By default the package offers what this version of Node has, and an older one may not have it. */
const supportedAlgorithmIDs = [-8, -7, -257]

/** Replace these by tables. `accounts`: by `to`. `passkeys`: by their id. `pending`: by the cookie, for minutes. */
const [accounts, passkeys, pending, sessions] = [new Map(), new Map(), new Map(), new Map()]

const calls = {
  /** Postern accepts each pass once, so it is the grant for one passkey. */
  async '/enrol/options'({ pass, channel, to: typed }, { session }) {
    const { valid, scene, to, verifiedAt } = await verifiedPass({ pass, channel, to: typed })
    const endsAt = Date.parse(verifiedAt) + fiveMinutesMs
    if (!valid || scene !== 'passkey' || endsAt <= Date.now())
      throw new Refusal(403, 'Please confirm your number or address again.')
    const account = accounts.get(to) ?? { to, id: randomBytes(16), passkeyIds: [] }
    // A number can get another owner, or be stolen. It must not open an account that has a better key.
    if (account.passkeyIds.length > 0 && session?.to !== to)
      throw new Refusal(403, 'This account has a passkey. Please sign in with it.')
    const options = await generateRegistrationOptions({
      rpName: 'Shop',
      rpID,
      userName: to,
      userID: new Uint8Array(account.id),
      excludeCredentials: account.passkeyIds.map((id) => ({ id })),
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      supportedAlgorithmIDs,
    })
    const { length: count } = account.passkeyIds
    return {
      answer: options,
      keep: { kind: 'enrol', account, count, endsAt, challenge: options.challenge },
    }
  },

  async '/enrol'(response, { taken }) {
    if (taken?.kind !== 'enrol')
      throw new Refusal(403, 'Please confirm your number or address again.')
    const { account, count, challenge } = taken
    const { registrationInfo } = await checked(verifyRegistrationResponse, {
      response,
      expectedChallenge: challenge,
    })
    // Another passkey since then: the grant was for the account as it was.
    if ((accounts.get(account.to) ?? account) !== account || account.passkeyIds.length !== count)
      throw new Refusal(403, 'This account has a passkey. Please sign in with it.')
    const { credential } = registrationInfo
    accounts.set(account.to, account)
    account.passkeyIds.push(credential.id)
    passkeys.set(credential.id, { ...credential, account })
    return signedIn(account)
  },

  async '/sign-in/options'() {
    const options = await generateAuthenticationOptions({ rpID, userVerification: 'required' })
    const endsAt = Date.now() + fiveMinutesMs
    return { answer: options, keep: { kind: 'sign-in', endsAt, challenge: options.challenge } }
  },

  async '/sign-in'(response, { taken }) {
    const passkey = passkeys.get(response.id)
    if (taken?.kind !== 'sign-in' || !passkey)
      throw new Refusal(403, 'This passkey is not known here.')
    const { authenticationInfo } = await checked(verifyAuthenticationResponse, {
      response,
      expectedChallenge: taken.challenge,
      credential: passkey,
    })
    passkey.counter = authenticationInfo.newCounter
    return signedIn(passkey.account)
  },
}

const signedIn = ({ to }) => ({ answer: { to }, session: { to } })

/** The package throws at a passkey of another challenge, domain or key. */
async function checked(verify, facts) {
  const expected = { expectedOrigin: ORIGIN, expectedRPID: rpID, ...facts }
  const result = await verify(expected).catch(({ message }) => ({ verified: false, message }))
  if (result.verified) return result
  console.error('refused a passkey:', result.message)
  throw new Refusal(403, 'This passkey is not valid.')
}

async function verifiedPass(body) {
  const answer = await fetch(`${POSTERN_URL}/v1/passes/verify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(5_000),
  })
  // 400 and 422: the page sent no pass or no address. Other errors are not the visitor's fault.
  if (answer.status === 400 || answer.status === 422) return { valid: false }
  if (!answer.ok) throw new Error(`Postern answers ${answer.status}`)
  return answer.json()
}
// #endregion server

class Refusal extends Error {
  constructor(status, message) {
    super(message)
    this.status = status
  }
}

/** A challenge is used once: whatever the answer is, the next attempt needs a new one. */
function take(cookie) {
  const found = pending.get(cookie)
  pending.delete(cookie)
  return found && found.endsAt > Date.now() ? found : undefined
}

/** Strangers can begin a sign-in, so the number of these is limited. The oldest ones go first. */
function keep(map, value) {
  const name = randomBytes(16).toString('base64url')
  map.set(name, value)
  if (map.size > 10_000) map.delete(map.keys().next().value)
  return name
}

async function answerTo(path, cookies, body) {
  const call = Object.hasOwn(calls, path) ? calls[path] : undefined
  if (!call) throw new Refusal(404, 'There is no such page.')
  const read = JSON.parse(body)
  const isSecond = !path.endsWith('/options')
  const taken = isSecond ? take(cookies.pending) : undefined
  const result = await call(read, { taken, session: sessions.get(cookies.session) })
  const set = []
  if (result.keep) set.push(`pending=${keep(pending, result.keep)}`)
  if (result.session) set.push(`session=${keep(sessions, result.session)}`)
  return { answer: result.answer, set }
}

const fileOf = (name) => readFileSync(new URL(name, import.meta.url), 'utf8')
const files = {
  '/page.js': ['text/javascript', fileOf('page.js')],
  '/': [
    'text/html; charset=utf-8',
    fileOf('index.html')
      .replaceAll('https://codes.example', POSTERN_URL)
      .replace('ppk_…', PUBLISHABLE_KEY),
  ],
}
const cookieFlags = `; HttpOnly; SameSite=Strict; Path=/${ORIGIN.startsWith('https') ? '; Secure' : ''}`

const server = createServer(async (request, response) => {
  const { method, url, headers } = request
  if (method !== 'POST') {
    const [type, content] = files[url] ?? ['text/plain', 'There is no such page.']
    const policy = `default-src 'self'; img-src data:; script-src 'self' ${POSTERN_URL}; connect-src 'self' ${POSTERN_URL}; style-src 'self'`
    response.writeHead(files[url] ? 200 : 404, {
      'content-type': type,
      'content-security-policy': policy,
    })
    response.end(content)
    return
  }
  const cookies = Object.fromEntries(
    (headers.cookie ?? '').split('; ').map((pair) => pair.split('=')),
  )
  const {
    status,
    answer,
    set = [],
  } = await text(request)
    .then((body) => answerTo(url, cookies, body))
    .then((told) => ({ status: 200, ...told }))
    .catch((error) => {
      if (error instanceof Refusal)
        return { status: error.status, answer: { message: error.message } }
      console.error(error)
      return { status: 503, answer: { message: 'This does not work now. Please try again.' } }
    })
  response.writeHead(status, {
    'content-type': 'application/json',
    'set-cookie': set.map((cookie) => cookie + cookieFlags),
  })
  response.end(JSON.stringify(answer))
})

server.listen(Number(PORT), '127.0.0.1', () => console.log(ORIGIN))
