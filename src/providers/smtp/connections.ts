/**
 * The open connections to one mail server. The caller limits the mails under way, and with them the connections.
 *
 * A server counts the errors of a session until it accepts a mail. Postfix delays every command by a second from the tenth
 * error on, and ends the session at the twentieth. A refused mail is two errors, because RCPT and DATA are sent together.
 * So refused recipients would delay good mails. A connection with several refusals is therefore replaced. The new one is
 * opened at once, and the next mails use the others: greeting, TLS and login cost time.
 */
import {
  type Connection,
  connectionLost,
  type Mail,
  openConnection,
  type ServerSettings,
} from './connection.ts'
import type { SmtpFailure } from './errors.ts'

/** Servers close idle connections within minutes. Postern closes them first, so that no mail meets a closed connection. */
const idleTimeoutMs = 60_000

const maxRefusals = 4

export function createConnections(server: ServerSettings) {
  const all = new Set<Connection>()
  /** Connections without a mail, with the timers that end them. The connection that was used last is at the end. */
  const idle = new Map<Connection, NodeJS.Timeout>()
  let isClosed = false

  function open(): Connection {
    if (isClosed) throw connectionLost()
    const one = openConnection(server, () => {
      all.delete(one)
      unrest(one)
    })
    all.add(one)
    return one
  }

  function rest(one: Connection): void {
    const timer = setTimeout(() => {
      unrest(one)
      one.quit()
    }, idleTimeoutMs)
    idle.set(one, timer.unref())
  }

  function unrest(one: Connection): void {
    clearTimeout(idle.get(one))
    idle.delete(one)
  }

  function take(): Connection {
    const lastFirst = [...idle.keys()].reverse()
    const one = lastFirst.find((each) => each.isReady()) ?? lastFirst[0]
    if (one) unrest(one)
    return one ?? open()
  }

  async function sendOver(one: Connection, ...mail: Parameters<Connection['send']>) {
    try {
      return await one.send(...mail)
    } finally {
      if (one.refusals() < maxRefusals) {
        if (one.isOpen()) rest(one)
      } else {
        one.quit()
        rest(open())
      }
    }
  }

  return {
    /**
     * `onHandedOver` is called when the end of the message is sent: from then on, the server may have accepted it.
     * `onReused` gets a function that leaves a connection that was idle. The mail then goes over a new one. A network can
     * forget an idle connection, which then stays silent.
     */
    async send(
      mail: Mail,
      signal: AbortSignal,
      onHandedOver: () => void,
      onReused: (leave: () => void) => void = () => {},
    ) {
      let isHandedOver = false
      const handOver = () => {
        isHandedOver = true
        onHandedOver()
      }
      const one = take()
      const wasReady = one.isReady()
      if (wasReady) onReused(() => isHandedOver || one.close())
      try {
        return await sendOver(one, mail, signal, handOver)
      } catch (error) {
        if (!wasReady || isHandedOver || !isLost(error as SmtpFailure)) throw error
      }
      // The server had closed the idle connection, or the caller has left it.
      onReused(() => {})
      return sendOver(open(), mail, signal, handOver)
    },

    /** Ends all connections and stops mails under way. */
    close(): void {
      isClosed = true
      for (const one of all) one.close()
    },
  }
}

const isLost = ({ code = '', responseCode }: SmtpFailure) =>
  ['ECONNECTION', 'ESOCKET'].includes(code) || responseCode === 421
