/**
 * Receives events and prints them. See docs/events.md.
 *
 *   cd examples/events && npm install
 *   EVENTS_SECRET=whsec_… node receiver.mjs   # and in the policy file: events: { url: "http://localhost:8083", secret: … }
 */
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'

const { EVENTS_SECRET, PORT = '8083' } = process.env

// #region receive
const webhook = new Webhook(EVENTS_SECRET) // for a secret without whsec_: new Webhook(secret, { format: 'raw' })
const seen = new Set() // replace it by a table with a unique column that keeps each id for a day

const server = createServer(async (request, response) => {
  let event
  try {
    event = webhook.verify(await text(request), request.headers)
  } catch {
    return response.writeHead(401).end()
  }
  response.writeHead(204).end()
  const { type, data } = event
  const id = request.headers['webhook-id']
  if (!seen.has(id)) console.log(type, data.to)
  seen.add(id)
})
// #endregion receive

server.listen(Number(PORT), '127.0.0.1', () => console.log(`http://localhost:${PORT}`))
