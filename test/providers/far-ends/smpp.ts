import type { AddressInfo, Socket } from 'node:net'
import smpp, { type SmppPdu, type SmppSession } from 'smpp'
import { eventually } from '../../tools/wait.ts'
import type { Behaviour, FarEnd } from '../conformance.ts'

/**
 * An SMSC over TCP, by the npm package `smpp`. It is another implementation of the protocol than Postern's, so the
 * two test each other.
 */
export interface SmppFarEnd extends FarEnd {
  readonly port: number
  readonly submits: readonly SmppPdu[]
  readonly binds: readonly SmppPdu[]
  /** The bound sessions, oldest first. */
  readonly sessions: readonly SmppSession[]
  /** Answers submits with this status from now on; 0: success again. */
  refuse(status: number, after?: number): void
}

const doorBehaviours: readonly Behaviour[] = ['refuse_talk', 'babble', 'hang']

const statuses: Partial<Record<Behaviour, number>> = {
  reject: 0x66,
  invalid_recipient: 0x0b,
  throttle: 0x58,
  postpone: 0xfe,
  unavailable: 0x08,
  error_inside: 0x04,
}

export async function startSmppFarEnd(
  options: {
    key?: string
    cert?: string
    password?: string
    /** Which binds it has. */
    knows?: 'transceiver' | 'separate'
    /** So many binds of a receiver are refused. */
    refusedReceivers?: number
    messageId?: (n: number) => string
    /** Called with the recipient of each accepted message. The answer waits until it resolves. */
    answer?: (to: string) => Promise<void>
  } = {},
): Promise<SmppFarEnd> {
  const {
    password = 'pass',
    knows = 'transceiver',
    refusedReceivers = 0,
    messageId = (n: number) => `smsc-${n}`,
    answer: taking,
    ...tls
  } = options
  let behaviour: Behaviour = 'accept'
  let refusal = { status: 0, after: 0 }
  const taken: { reference: string; to: string }[] = []
  const submits: SmppPdu[] = []
  const binds: SmppPdu[] = []
  const sessions: SmppSession[] = []
  const receivers = new Set<SmppSession>()
  const sockets = new Set<Socket>()
  const binding =
    knows === 'separate' ? ['bind_transmitter', 'bind_receiver'] : ['bind_transceiver']

  const server = smpp.createServer(tls, (session) => {
    const { socket } = session
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    session.on('error', () => {})
    if (behaviour === 'refuse_talk') return socket.resetAndDestroy()
    if (behaviour === 'babble') return socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
    for (const bind of binding) session.on(bind, (pdu) => bound(session, pdu))
    if (knows === 'separate') {
      session.on('bind_transceiver', (pdu) => refuseUnknown(session, pdu))
    }
    session.on('enquire_link', (pdu) => session.send(pdu.response()))
    session.on('unbind', (pdu) => {
      session.send(pdu.response())
      socket.end()
    })
    session.on('submit_sm', (pdu) => submitted(session, pdu))
  })

  function bound(session: SmppSession, pdu: SmppPdu) {
    if (behaviour === 'hang') return
    binds.push(pdu)
    const ofRole = binds.filter(({ command }) => command === 'bind_receiver')
    const isRefused = pdu.command === 'bind_receiver' && ofRole.length <= refusedReceivers
    const status = pdu.password !== password ? 0x0e : isRefused ? 0x0d : 0
    session.send(pdu.response({ command_status: status, system_id: 'far-end' }))
    if (status) return
    sessions.push(session)
    if (pdu.command === 'bind_receiver') receivers.add(session)
  }

  /** Like an SMSC for an older version of the protocol. */
  function refuseUnknown(session: SmppSession, pdu: SmppPdu) {
    session.send(pdu.response({ command_status: 0x03 }))
    session.socket.end()
  }

  function submitted(session: SmppSession, pdu: SmppPdu) {
    if (behaviour === 'hang') return
    const wrongBindStatus = 0x04
    if (receivers.has(session))
      return session.send(pdu.response({ command_status: wrongBindStatus }))
    submits.push(pdu)
    const status = statuses[behaviour] ?? (submits.length > refusal.after ? refusal.status : 0)
    if (status) return session.send(pdu.response({ command_status: status }))
    taken.push({ reference: '', to: `+${pdu.destination_addr}` })
    if (behaviour === 'lose_answer') return session.socket.resetAndDestroy()
    const answer = pdu.response({ message_id: messageId(submits.length) })
    if (behaviour !== 'reset_mid_answer') {
      if (!taking) return session.send(answer)
      return void taking(`+${pdu.destination_addr}`).then(() => session.send(answer))
    }
    session.socket.write(answer.toBuffer().subarray(0, 10), () => session.socket.resetAndDestroy())
  }

  /** An earlier session would not show a new behaviour of the connection. The provider has seen its end. */
  async function endSessions() {
    const bound = sessions.filter(({ socket }) => sockets.has(socket) && !socket.destroyed)
    await Promise.all(bound.map((session) => new Promise((resolve) => session.unbind(resolve))))
    for (const socket of sockets) socket.resetAndDestroy()
    await eventually(() => sockets.size === 0)
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    taken,
    complaints: [],
    submits,
    binds,
    sessions,
    refuse(status, after = 0) {
      refusal = { status, after }
    },
    async behave(next) {
      const isDoorChanged = [behaviour, next].some((each) => doorBehaviours.includes(each))
      behaviour = next
      if (isDoorChanged) await endSessions()
    },
    openConnections: () => sockets.size,
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
