import { setTimeout as sleep } from 'node:timers/promises'
import { textFor } from '../../base/by-country.ts'
import { startDeadline } from '../../base/deadline.ts'
import { unreadable } from '../../base/receipt.ts'
import { type Message, type Provider, type SendResult, secondsLeft } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted } from '../send-result.ts'
import { hasSenderFor, noSender } from '../sender.ts'
import { resultOfStatus } from './errors.ts'
import {
  type Address,
  type Delivered,
  decodeText,
  encodeShortMessage,
  longestRelativeSeconds,
} from './pdu.ts'
import { answerId, readOptOut, readReceipt } from './receipts.ts'
import { type Exchange, openSession } from './session.ts'
import type { Role } from './session-options.ts'
import { createSessions } from './sessions.ts'
import { type SmppSettings, smppSettings } from './settings.ts'
import { cutText, encodeSegments, encodeWhole } from './text.ts'

/**
 * SMS over SMPP 3.4 to the SMSC of a carrier. The protocol has no field for the notice id, so receipts are matched by the
 * message id of the SMSC. A process that accepts receipts binds at once and stays bound, because the SMSC sends receipts
 * only to connected clients. Other processes bind with their first message.
 */
export const smpp: ProviderKind<SmppSettings> = {
  kind: 'smpp',
  channels: ['sms'],
  settings: smppSettings,
  serves: ({ from }, country) => hasSenderFor(from, country),
  create: createSmpp,
  probe: probeSmpp,
}

/** Binds and unbinds in each role that sending needs. Receipts that arrive meanwhile are requested again. */
async function probeSmpp(settings: SmppSettings, timeoutMs: number): Promise<string | undefined> {
  const tryAgain = 0x64
  for (const role of rolesOf(settings)) {
    const session = openSession({
      ...connectionOf(settings, role, timeoutMs),
      onDeliver: async () => tryAgain,
      onEnd: () => {},
    })
    const problem = await session.bound
    await session.close()
    if (problem !== undefined) return `SMPP ${problem}`
  }
  return undefined
}

const rolesOf = ({ bind }: SmppSettings): readonly Role[] =>
  bind === 'separate' ? ['transmitter', 'receiver'] : ['transceiver']

const connectionOf = (settings: SmppSettings, role: Role, timeoutMs: number) => ({
  ...settings.url,
  role,
  systemType: settings.systemType,
  timeoutMs,
  enquireEveryMs: settings.enquireEvery,
  window: settings.window,
})

/** Pause before a part of a text that has begun is sent again. Each further pause is twice as long. */
const partAgainAfterMs = 200

/** The header that joins the parts counts them in one byte. */
const maxParts = 255

const noBytes = Buffer.alloc(0)
const receiptAsked = 1
const headerInside = 0x40

function createSmpp(name: string, settings: SmppSettings, deps: ProviderDeps): Provider {
  const { onReceipt, onOptOut, timeoutMs, answerMs = timeoutMs } = deps
  const [sending, receiving = sending] = rolesOf(settings) as [Role, Role?]
  const sessions = createSessions(onReceipt && receiving, (role) => ({
    ...connectionOf(settings, role, timeoutMs),
    onDeliver,
  }))
  let isClosed = false
  let reference = Math.floor(Math.random() * 256)

  async function onDeliver(delivered: Delivered | undefined): Promise<number> {
    const receipt = delivered ? readReceipt(delivered, settings) : unreadable
    sessions.works(receiving)
    if (receipt) await onReceipt?.(name, receipt)
    const optOut = delivered && !receipt ? readOptOut(delivered) : undefined
    if (optOut) await onOptOut?.(name, optOut)
    return 0
  }

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    if (isClosed) return { kind: 'unavailable', detail: 'SMPP closed' }
    if (signal.aborted) return { kind: 'unavailable', detail: 'SMPP aborted' }
    const from = textFor(settings.from, message.country ?? '')
    if (from === undefined) return noSender('smpp')
    const deadline = startDeadline(signal, timeoutMs)
    try {
      const bodies = encodeMessage(message, from)
      if (bodies.length > maxParts) return { kind: 'rejected', detail: 'SMPP text too long' }
      const [first = noBytes, ...others] = bodies
      // From now on, the SMSC may have accepted a part.
      const onWritten = () => deadline.restart(answerMs)
      const begun = await submit(first, deadline.signal, onWritten)
      if (resultOf(begun).kind !== 'accepted') return resultOf(begun)
      const rest = others.map((body) => submitUntilTaken(body, deadline.signal))
      return combine([begun, ...(await Promise.all(rest))], settings.receiptIds)
    } finally {
      deadline.clear()
    }
  }

  async function submit(
    body: Buffer,
    signal: AbortSignal,
    onWritten = () => {},
  ): Promise<Exchange> {
    const session = sessions.current(sending)
    if (typeof session === 'string') return { kind: 'not_sent', reason: session }
    const problem = await Promise.race([session.bound, aborted(signal)])
    if (problem !== undefined) return { kind: 'not_sent', reason: problem }
    const exchange = await session.submit(body, signal, onWritten)
    if (exchange.kind === 'answered') sessions.works(sending)
    return exchange
  }

  /** A phone shows a text only when it has all parts. So a part that was not accepted is sent again after a pause. */
  async function submitUntilTaken(body: Buffer, signal: AbortSignal): Promise<Exchange> {
    for (let pauseMs = partAgainAfterMs; ; pauseMs *= 2) {
      const exchange = await submit(body, signal)
      if (!['throttled', 'unavailable'].includes(resultOf(exchange).kind)) return exchange
      await sleep(pauseMs, undefined, { signal }).catch(() => {})
      if (signal.aborted) return exchange
    }
  }

  /** Only the last part requests a receipt, so that each message has one. */
  function encodeMessage(message: Message, from: string): Buffer[] {
    const { to, text } = message
    const source = { ...sourceAddress(from), ...settings.source }
    reference = (reference + 1) % 256
    const isWhole = settings.longTexts === 'payload'
    const { dataCoding, contents } = isWhole
      ? encodeWhole(text, settings.alphabet)
      : encodeSegments(text, reference, settings.alphabet)
    const destination = { ton: 1, npi: 1, ...settings.destination, digits: to.replace(/^\+/, '') }
    const validSeconds =
      settings.validity === 'none' ? undefined : secondsLeft(message, longestRelativeSeconds)
    return contents.map((content, index) =>
      encodeShortMessage({
        source,
        destination,
        esmClass: contents.length > 1 ? headerInside : 0,
        registeredDelivery: index === contents.length - 1 ? receiptAsked : 0,
        dataCoding,
        validSeconds,
        ...(isWhole && content.length > 140 ? { content: noBytes, payload: content } : { content }),
      }),
    )
  }

  return {
    name,
    kind: smpp.kind,
    channels: smpp.channels,
    slots: settings.window,
    // Each part of a long text needs a place in the window.
    slotsFor: ({ text }) =>
      settings.longTexts === 'payload' ? 1 : cutText(text, settings.alphabet).segments.length,
    send,
    async close() {
      isClosed = true
      await sessions.close()
    },
  }
}

/** Type of number: 1 international, 3 short code, 5 name. Numbering plan: 1 telephone, 0 unknown. */
function sourceAddress(from: string): Address {
  if (!/^\+?\d+$/.test(from)) return { ton: 5, npi: 0, digits: from }
  const digits = from.replace(/^\+/, '')
  return from.startsWith('+') ? { ton: 1, npi: 1, digits } : { ton: 3, npi: 0, digits }
}

/** Combines the results of all parts. If the SMSC accepted only some parts, the outcome is unknown. */
function combine(
  exchanges: readonly Exchange[],
  receiptIds: SmppSettings['receiptIds'],
): SendResult {
  const results = exchanges.map(resultOf)
  const failed = results.find((result) => result.kind !== 'accepted')
  if (!failed) {
    const last = exchanges.at(-1)
    const id = last?.kind === 'answered' ? decodeText(last.pdu.body) : ''
    return accepted(answerId(id, receiptIds))
  }
  const isPartTaken = results.some(({ kind }) => kind === 'accepted' || kind === 'unknown')
  return isPartTaken && failed.kind !== 'unknown'
    ? { kind: 'unknown', detail: 'SMPP only some parts were accepted' }
    : failed
}

function resultOf(exchange: Exchange): SendResult {
  if (exchange.kind === 'not_sent') {
    return { kind: 'unavailable', detail: `SMPP ${exchange.reason}` }
  }
  if (exchange.kind === 'lost') return { kind: 'unknown', detail: `SMPP ${exchange.reason}` }
  const { status } = exchange.pdu
  return status === 0 ? accepted() : resultOfStatus(status)
}

function aborted(signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve('no answer in time'), { once: true })
  })
}
