/**
 * A login whose account is locked after three wrong passwords. See docs/guides/login-lock.md.
 *
 *   SECRET_KEY=$(cat .postern/demo-key) node examples/login-lock/server.mjs   # in Postern's folder, beside the demo
 *   curl -i localhost:8081 -d user=ada -d password=wrong
 */
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'

const { POSTERN_URL = 'http://localhost:3000', SECRET_KEY, PORT = '8081' } = process.env
if (!SECRET_KEY) throw new Error('set SECRET_KEY')

// #region log-in
async function logIn(user, password, ip) {
  const attempt = { policy: 'login', subject: user.toLowerCase(), ip }
  const counted = await ask('/v1/attempts', attempt)
  if (counted.status === 429) return { lockedForMs: (await counted.json()).retryAfterMs }
  // 503: Postern cannot count this try now, so it is refused. Any other answer would be a way around the lock.
  if (!counted.ok) throw new Error(`Postern answers ${counted.status}`)
  if (!isRight(user, password)) return 'wrong'
  await ask('/v1/attempts/clear', attempt)
  return 'in'
}

const ask = (path, body) =>
  fetch(`${POSTERN_URL}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(5_000),
  })
// #endregion log-in

/** Replace it by a table of salted hashes. */
const isRight = (user, password) => user.toLowerCase() === 'ada' && password === 'open sesame'

async function answer(request) {
  const form = new URLSearchParams(await text(request))
  return logIn(form.get('user') ?? '', form.get('password') ?? '', request.socket.remoteAddress)
}

createServer(async (request, response) => {
  const ended = await answer(request).catch((error) => {
    console.error(error)
    return 'unknown'
  })
  if (ended === 'in') response.end('Welcome!\n')
  else if (ended === 'wrong') response.writeHead(401).end('Wrong name or password.\n')
  else if (ended === 'unknown') response.writeHead(503).end('Please try again in a minute.\n')
  else {
    const seconds = Math.ceil(ended.lockedForMs / 1_000)
    response.writeHead(429, { 'retry-after': seconds }).end(`Locked for ${seconds} s.\n`)
  }
}).listen(Number(PORT), '127.0.0.1', () => console.log(`http://localhost:${PORT}`))
