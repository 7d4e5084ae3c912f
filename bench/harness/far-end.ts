/** Servers that accept each message, as a mail server or a carrier's API does, `answerMs` after it has arrived. */
import { createServer } from 'node:http'
import type { Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'

type Accepted = (to: string) => void

export function serveSmtp(accepted: Accepted, answerMs = () => 0): Server {
  return new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    onData(stream, session, done) {
      stream.on('end', () => {
        // The envelope is empty after the call.
        accepted(session.envelope.rcptTo[0]?.address ?? '')
        later(() => done(null), answerMs())
      })
      stream.resume()
    },
  }).server
}

export function serveHttp(accepted: Accepted, answerMs = () => 0): Server {
  return createServer(async (incoming, answer) => {
    const { to } = JSON.parse(await text(incoming))
    accepted(to)
    answer.setHeader('content-type', 'application/json')
    later(() => answer.end('{"id":"1"}'), answerMs())
  })
}

function later(answer: () => void, ms: number): void {
  if (ms > 0) setTimeout(answer, ms)
  else answer()
}
