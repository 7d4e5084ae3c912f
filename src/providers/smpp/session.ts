import net from 'node:net'
import tls from 'node:tls'
import { orLate } from '../../base/deadline.ts'
import {
  type Bind,
  command,
  createPduReader,
  type Delivered,
  decodeDelivered,
  encodeBind,
  encodePdu,
  type Pdu,
  responseTo,
} from './pdu.ts'

/**
 * One connection to an SMSC. A transmitter sends messages, a receiver gets receipts, a transceiver does both.
 *
 * Requests overlap up to a window, and answers are matched by their sequence number. The end of the connection settles
 * every request at once: a written request is `lost`, a waiting request is `not_sent`. An ended session is not used again;
 * its owner opens another.
 *
 * An SMSC that unbinds may have accepted messages that it has not answered yet. So the session begins no request after the
 * unbind, and leaves when the requests under way have their answers or run out of time.
 */
export type Role = 'transmitter' | 'receiver' | 'transceiver'

export interface SessionOptions extends Bind {
  readonly role: Role
  readonly host: string
  readonly port: number
  readonly isSecure: boolean
  readonly timeoutMs: number
  readonly enquireEveryMs: number
  readonly window: number
  /** Resolves to the command_status of the answer. */
  readonly onDeliver: (delivered: Delivered) => Promise<number>
  readonly onEnd: () => void
}

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

/** The SMSC may try a receipt again later. */
const temporaryFailure = 0x64

export function openSession(options: SessionOptions) {
  const { host, port, timeoutMs } = options
  const socket = options.isSecure
    ? tls.connect({ host, port, servername: net.isIP(host) ? '' : host })
    : net.connect({ host, port })
  const read = createPduReader()
  const pending = new Map<number, (exchange: Exchange) => void>()
  const waiting = new Set<() => void>()
  let sequence = 0
  let submitsUnderWay = 0
  let endReason: string | undefined
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
      resolve(`bind refused with status 0x${status.toString(16).padStart(8, '0')}`)
      end('bind refused')
    })
    socket.once('close', () => resolve(endReason))
  })
  socket.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'connection lost'))
  socket.on('close', () => end('connection lost'))
  socket.on('data', (chunk) => {
    const pdus = read(chunk)
    if (!pdus) return end('answer not understood')
    for (const pdu of pdus) take(pdu)
  })

  function take(pdu: Pdu): void {
    if (pdu.commandId >= command.genericNack) {
      const settle = pending.get(pdu.sequence)
      pending.delete(pdu.sequence)
      settle?.({ kind: 'answered', pdu })
    } else if (pdu.commandId === command.enquireLink) {
      answer(pdu, 0)
    } else if (pdu.commandId === command.unbind) {
      unbinding = pdu
      for (const go of waiting) go()
      leaveIfIdle()
    } else if (pdu.commandId === command.deliverSm) {
      void deliver(pdu)
    } else {
      const invalidCommand = 0x03
      write({ ...pdu, commandId: command.genericNack, status: invalidCommand, body: noBody })
    }
  }

  /** A receipt that can't be read is accepted, because a repeat would not help. */
  async function deliver(pdu: Pdu): Promise<void> {
    const delivered = decodeDelivered(pdu.body)
    const status = delivered ? await options.onDeliver(delivered).catch(() => temporaryFailure) : 0
    answer(pdu, status, Buffer.from([0]))
  }

  function answer({ commandId, sequence }: Pdu, status: number, body = noBody): void {
    write({ commandId: responseTo(commandId), status, sequence, body })
  }

  function write(pdu: Pdu): void {
    if (endReason === undefined) socket.write(encodePdu(pdu))
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

  async function submit(body: Buffer, signal: AbortSignal): Promise<Exchange> {
    try {
      while (submitsUnderWay >= options.window && !isEnded() && !signal.aborted) {
        await turn(signal)
      }
      if (signal.aborted) return { kind: 'not_sent', reason: 'no answer in time' }
      submitsUnderWay++
      try {
        return await request(command.submitSm, body, signal)
      } finally {
        submitsUnderWay--
      }
    } finally {
      // A request that gives up also frees its turn for the next one.
      const [next] = waiting
      next?.()
    }
  }

  /** Waits until a request ends, the session ends, or the signal aborts. */
  function turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = () => {
        waiting.delete(go)
        signal.removeEventListener('abort', go)
        resolve()
      }
      waiting.add(go)
      signal.addEventListener('abort', go, { once: true })
    })
  }

  async function enquire(): Promise<void> {
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

  function end(reason: string): void {
    if (endReason !== undefined) return
    endReason = reason
    clearTimeout(connectTimer)
    clearInterval(enquireTimer)
    for (const settle of pending.values()) settle({ kind: 'lost', reason })
    pending.clear()
    for (const go of waiting) go()
    socket.destroySoon()
    setTimeout(() => socket.destroy(), unbindMs).unref()
    options.onEnd()
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
