/**
 * A sign-up page with a plain form and its server, without any package. See docs/start.md.
 *
 *   POSTERN_URL=http://localhost:3000 PUBLISHABLE_KEY=ppk_… SECRET_KEY=psk_… node examples/plain-form/server.mjs
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'

const { POSTERN_URL = 'http://localhost:3000', PUBLISHABLE_KEY, SECRET_KEY } = process.env
const { PORT = '8080' } = process.env
if (!PUBLISHABLE_KEY || !SECRET_KEY) throw new Error('set PUBLISHABLE_KEY and SECRET_KEY')

const style = readFileSync(new URL('page.css', import.meta.url), 'utf8')
const page = readFileSync(new URL('index.html', import.meta.url), 'utf8')
  .replaceAll('https://codes.example', POSTERN_URL)
  .replace('ppk_…', PUBLISHABLE_KEY)

const server = createServer(async (request, response) => {
  if (request.url === '/page.css') {
    response.writeHead(200, { 'content-type': 'text/css' }).end(style)
    return
  }
  const [status, body] = await answerTo(request).catch((error) => {
    console.error(error)
    return [503, answerPage('We cannot check that now. Please go back and try again in a minute.')]
  })
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'self'; script-src ${POSTERN_URL}; connect-src ${POSTERN_URL}; style-src 'self'`,
  })
  response.end(body)
})

async function answerTo(request) {
  if (request.method !== 'POST' || request.url !== '/signup') return [200, page]
  const to = await provenRecipient(new URLSearchParams(await text(request)))
  // Here a site creates the account of `to`.
  return to
    ? [200, answerPage('Welcome!')]
    : [403, answerPage('Please confirm your number or address first.')]
}

// #region pass
/**
 * The number or address that the pass proves. An attacker can write the rest of a form. The answer's `to` is one text
 * for all spellings, so that a person has one account.
 */
async function provenRecipient(form) {
  const answer = await fetch(`${POSTERN_URL}/v1/passes/verify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      pass: form.get('postern-pass') ?? '',
      channel: form.get('postern-channel'),
      to: form.get('postern-to'),
    }),
    signal: AbortSignal.timeout(5_000),
  })
  // 400 and 422: the form has no pass or no address. Other errors are not the visitor's fault.
  if (!answer.ok && answer.status !== 400 && answer.status !== 422)
    throw new Error(`Postern answers ${answer.status}`)
  const { valid, scene, to } = await answer.json()
  return valid === true && scene === 'signup' ? to : undefined
}
// #endregion pass

const answerPage = (sentence) =>
  `<!doctype html>
<html lang="en">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>Sign up</title>
  <link rel="stylesheet" href="/page.css">
  <p>${sentence}</p>
</html>`

server.listen(Number(PORT), '127.0.0.1', () => {
  const address = server.address()
  if (address && typeof address === 'object') console.log(`http://localhost:${address.port}`)
})
