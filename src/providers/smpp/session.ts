import net from 'node:net'
import tls from 'node:tls'
import { orLate } from '../../base/deadline.ts'
import { createSample } from '../../base/sample.ts'
import {
  command,
  createPduReader,
  decodeDelivered,
  encodeBind,
  encodePdu,
  type Pdu,
  responseTo,
} from './pdu.ts'
import type { Role, SessionEnd, SessionOptions } from './session-options.ts'
import { createWindow } from './window.ts'

/**
 * One connection to an SMSC. A transmitter sends messages, a receiver gets receipts, a transceiver does both.
 *
 * Requests overlap up to a window, and answers are matched by their sequence number. The end of the connection settles
 * every request at once: a written request is `lost`, a waiting request is `not_sent`. An ended session is not used again;
 * its owner opens another.
 *
 * An SMSC that unbinds may have accepted messages that it has not answered yet. So the session begins no request after the
 * unbind, and leaves when the requests under way have their answers or run out of time.
 *
 * An SMSC may send faster than Postern can answer, or read no answers. So the session reads nothing while many requests
 * of the SMSC have no answer, or while the SMSC does not read. A flood of requests that carry no message ends it.
 */
export type Exchange =
  | { readonly kind: 'answered'; readonly pdu: Pdu }
  | { readonly kind: 'not_sent'; readonly reason: string }
  | { readonly kind: 'lost'; readonly reason: string }

export type Session = ReturnType<typeof openSession>

const bindCommands: Readonly<Record<Role, number>> = {
  transmitter: command.bindTransmitter,
  receiver: command.bindReceiver,
  transceiver: command.bindTransceiver,
}

const unbindMs = 500

/** Requests of the SMSC without an answer, from which on nothing is read. */
const maxUnanswered = 200

/** Bytes that the SMSC has not read. Far above a full window of messages. */
const maxUnreadBytes = 1_048_576

/** Packets a second that are neither messages nor answers to a request. No SMSC needs more than one. */
const maxIdleTalk = 1_000

/** The SMSC may try a receipt again later. */
const temporaryFailure = 0x64

export function openSession(options: SessionOptions) {
  const { host, port, timeoutMs } = options
  const socket = options.isSecure
    ? tls.connect({ host, port, servername: net.isIP(host) ? '' : host })
    : net.connect({ host, port })
  const reader = createPduReader()
  const pending = new Map<number, (exchange: Exchange) => void>()
  const window = createWindow(options.window, isEnded)
  let sequence = 0
  let endReason: string | undefined
  /** Requests of the SMSC without an answer. */
  let unanswered = 0
  const isUsualTalk = createSample(maxIdleTalk)
  /** The unbind of the SMSC, if it is not answered yet. */
  let unbinding: Pdu | undefined

  socket.setNoDelay(true)
  const connectTimer = setTimeout(() => end('no answer in time'), timeoutMs)
  const enquireTimer = setInterval(enquire, options.enquireEveryMs)
  /** Undefined if bound, otherwise the reason. */
  const bound = new Promise<string | undefined>((resolve) => {
    socket.once(options.isSecure ? 'secureConnect' : 'connect', async () => {
      const exchange = await request(bindCommands[options.role], encodeBind(options))
      clearTimeout(connectTimer)
      if (exchange.kind !== 'answered') return resolve(exchange.reason)
      const { status } = exchange.pdu
      if (status === 0) return resolve(undefined)
      const reason = `bind refused with status 0x${status.toString(16).padStart(8, '0')}`
      resolve(reason)
      end(reason, { isRefused: true, bindStatus: status })
    })
    socket.once('close', () => resolve(endReason))
  })
  socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'connection lost'))
  socket.on('close', () => end('connection lost'))
  socket.on('data', (chunk) => {
    reader.append(chunk)
    takeAll()
  })
  socket.on('drain', takeAll)

  /** True if the session must not read now. */
  const isFull = () => unanswered >= maxUnanswered || socket.writableNeedDrain

  function takeAll(): void {
    while (endReason === undefined && !isFull()) {
      const pdu = reader.next()
      if (pdu === undefined) {
        socket.resume()
        return
      }
      if (pdu === 'invalid') end('answer not understood')
      else take(pdu)
    }
    socket.pause()
  }

  function take(pdu: Pdu): void {
    if (pdu.commandId === command.unbind) {
      unbinding = pdu
      window.end()
      leaveIfIdle()
    } else if (pdu.commandId === command.deliverSm || pdu.commandId === command.dataSm) {
      void deliver(pdu)
    } else if (pdu.commandId >= command.genericNack && pending.has(pdu.sequence)) {
      const settle = pending.get(pdu.sequence)
      pending.delete(pdu.sequence)
      settle?.({ kind: 'answered', pdu })
    } else {
      if (!isUsualTalk()) end('too many requests', { isRefused: true })
      else if (pdu.commandId === command.enquireLink) answer(pdu, 0)
      // The one request without an answer (4.12): a phone is back.
      else if (pdu.commandId === command.alertNotification) return
      else if (pdu.commandId < command.genericNack) refuse(pdu)
    }
  }

  function refuse(pdu: Pdu): void {
    const invalidCommand = 0x03
    write({ ...pdu, commandId: command.genericNack, status: invalidCommand, body: noBody })
  }

  /** A packet that can't be read is accepted, because a repeat would not help. */
  async function deliver(pdu: Pdu): Promise<void> {
    unanswered += 1
    const delivered = decodeDelivered(pdu)
    const status = await options.onDeliver(delivered).catch(() => temporaryFailure)
    unanswered -= 1
    answer(pdu, status, Buffer.from([0]))
    if (socket.isPaused()) takeAll()
  }

  function answer({ commandId, sequence }: Pdu, status: number, body = noBody): void {
    write({ commandId: responseTo(commandId), status, sequence, body })
  }

  function write(pdu: Pdu): void {
    if (endReason !== undefined) return
    socket.write(encodePdu(pdu))
    if (socket.writableLength > maxUnreadBytes) end('does not read', { isRefused: true })
  }

  /** Writes a request at once and waits for the answer with the same number. */
  function request(commandId: number, body: Buffer, signal?: AbortSignal): Promise<Exchange> {
    return new Promise((resolve) => {
      if (isEnded()) return resolve({ kind: 'not_sent', reason: endReason ?? 'unbound' })
      sequence = (sequence % 0x7fffffff) + 1
      const number = sequence
      const give = (exchange: Exchange) => {
        signal?.removeEventListener('abort', giveUp)
        resolve(exchange)
        leaveIfIdle()
      }
      const giveUp = () => {
        pending.delete(number)
        give({ kind: 'lost', reason: 'no answer in time' })
      }
      signal?.addEventListener('abort', giveUp, { once: true })
      pending.set(number, give)
      write({ commandId, status: 0, sequence: number, body })
    })
  }

  /** `onWritten` is called when the message is on its way. */
  async function submit(
    body: Buffer,
    signal: AbortSignal,
    onWritten: () => void,
  ): Promise<Exchange> {
    const ask = () => {
      const answer = request(command.submitSm, body, signal)
      onWritten()
      return answer
    }
    return (await window.run(ask, signal)) ?? { kind: 'not_sent', reason: 'no answer in time' }
  }

  async function enquire(): Promise<void> {
    // The answer would wait behind requests of the SMSC that Postern has not answered.
    if (unanswered >= maxUnanswered) return
    const asked = request(command.enquireLink, noBody)
    const isLost = await orLate(
      asked.then(({ kind }) => kind === 'lost'),
      timeoutMs,
      () => true,
    )
    if (isLost) end('no answer in time')
  }

  /** False for a session that takes more requests. */
  function isEnded(): boolean {
    return endReason !== undefined || unbinding !== undefined
  }

  function leaveIfIdle(): void {
    if (!unbinding || pending.size > 0 || endReason !== undefined) return
    answer(unbinding, 0)
    end('unbound')
  }

  function end(reason: string, how: Omit<SessionEnd, 'reason'> = { isRefused: false }): void {
    if (endReason !== undefined) return
    endReason = reason
    clearTimeout(connectTimer)
    clearInterval(enquireTimer)
    for (const settle of pending.values()) settle({ kind: 'lost', reason })
    pending.clear()
    window.end()
    socket.destroySoon()
    setTimeout(() => socket.destroy(), unbindMs).unref()
    options.onEnd({ reason, ...how })
  }

  return {
    bound,
    submit,
    isEnded,
    /** Unbinds and ends the connection, even with requests under way. */
    async close(): Promise<void> {
      if (endReason === undefined && !socket.connecting) {
        await request(command.unbind, noBody, AbortSignal.timeout(unbindMs))
      }
      end('closed')
      socket.destroy()
    },
  }
}

const noBody = Buffer.alloc(0)
