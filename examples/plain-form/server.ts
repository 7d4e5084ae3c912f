/**
 * A sign-up page with a plain form and its server, without any package. See docs/code-field.md.
 *
 *   POSTERN_URL=http://localhost:3000 PUBLISHABLE_KEY=ppk_… SECRET_KEY=psk_… node examples/plain-form/server.ts
 */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'

const { POSTERN_URL = 'http://localhost:3000', PUBLISHABLE_KEY, SECRET_KEY } = process.env
const { PORT = '8080' } = process.env
if (!PUBLISHABLE_KEY || !SECRET_KEY) throw new Error('set PUBLISHABLE_KEY and SECRET_KEY')

// What `npm run browser` prints.
const version = process.env.POSTERN_VERSION ?? '0.1.0'
const page = readFileSync(new URL('index.html', import.meta.url), 'utf8')
  .replaceAll('{src}', POSTERN_URL)
  .replace('{version}', version)
  .replace('{key}', PUBLISHABLE_KEY)

const server = createServer(async (request, response) => {
  const isForm = request.method === 'POST' && request.url === '/signup'
  const isTheirs = isForm && (await isGoodPass(request))
  response.writeHead(isForm && !isTheirs ? 403 : 200, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'self'; script-src ${POSTERN_URL}; connect-src ${POSTERN_URL}; style-src 'self'`,
  })
  response.end(isForm ? answerPage(isTheirs) : page)
})

async function isGoodPass(request: IncomingMessage): Promise<boolean> {
  const form = new URLSearchParams(await text(request))
  // Only this says that the address is theirs; the rest of the form is what anybody may write.
  const answer = await fetch(`${POSTERN_URL}/v1/passes/verify`, {
    method: 'POST',
    headers: { authorization: `Bearer ${SECRET_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      pass: form.get('postern-pass'),
      channel: form.get('postern-channel'),
      to: form.get('postern-to'),
    }),
  })
  const { valid, scene } = (await answer.json()) as { valid?: boolean; scene?: string }
  return valid === true && scene === 'signup'
}

const answerPage = (isTheirs: boolean) =>
  `<!doctype html><html lang="en"><title>Sign up</title><p>${
    isTheirs ? 'Welcome!' : 'Please confirm your number or address first.'
  }</p></html>`

server.listen(Number(PORT), '127.0.0.1', () => {
  const address = server.address()
  if (address && typeof address === 'object') console.log(`http://localhost:${address.port}`)
})
