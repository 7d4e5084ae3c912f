import { createGrowingBuffer } from '../../base/growing-buffer.ts'

/**
 * The bytes of the SMPP 3.4 packets that sending needs. A packet is a header of four 32-bit numbers (length, command,
 * status, sequence) and a body.
 */
export const command = {
  genericNack: 0x80000000,
  submitSm: 0x00000004,
  deliverSm: 0x00000005,
  dataSm: 0x00000103,
  alertNotification: 0x00000102,
  unbind: 0x00000006,
  bindReceiver: 0x00000001,
  bindTransmitter: 0x00000002,
  bindTransceiver: 0x00000009,
  enquireLink: 0x00000015,
} as const

/** The command of an answer is the command of its request with the highest bit set. */
export function responseTo(commandId: number): number {
  return (commandId | 0x80000000) >>> 0
}

export interface Pdu {
  readonly commandId: number
  readonly status: number
  readonly sequence: number
  readonly body: Buffer
}

export function encodePdu({ commandId, status, sequence, body }: Pdu): Buffer {
  const header = Buffer.alloc(headerBytes)
  header.writeUInt32BE(headerBytes + body.length, 0)
  header.writeUInt32BE(commandId, 4)
  header.writeUInt32BE(status, 8)
  header.writeUInt32BE(sequence, 12)
  return Buffer.concat([header, body])
}

const headerBytes = 16

/** Far above the length of any message. A peer that announces a longer packet does not use SMPP. */
const maxPduBytes = 64 * 1024

/** Cuts a stream into packets. */
export function createPduReader() {
  const stream = createGrowingBuffer()
  return {
    append: stream.append,
    /** Undefined if the next packet is not complete. `invalid` for an impossible length, and from then on always. */
    next(): Pdu | 'invalid' | undefined {
      const bytes = stream.bytes()
      if (bytes.length < 4) return undefined
      const length = bytes.readUInt32BE(0)
      if (length < headerBytes || length > maxPduBytes) return 'invalid'
      if (bytes.length < length) return undefined
      const pdu = {
        commandId: bytes.readUInt32BE(4),
        status: bytes.readUInt32BE(8),
        sequence: bytes.readUInt32BE(12),
        body: Buffer.from(bytes.subarray(headerBytes, length)),
      }
      stream.drop(length)
      return pdu
    },
  }
}

export interface Bind {
  readonly systemId: string
  readonly password: string
  readonly systemType: string
}

export function encodeBind({ systemId, password, systemType }: Bind): Buffer {
  const interfaceVersion = 0x34
  const bytes = Buffer.from([interfaceVersion, 0, 0])
  return Buffer.concat([text(systemId), text(password), text(systemType), bytes, text('')])
}

export interface Address {
  readonly ton: number
  readonly npi: number
  readonly digits: string
}

export interface ShortMessage {
  readonly source: Address
  readonly destination: Address
  readonly esmClass: number
  readonly registeredDelivery: number
  readonly dataCoding: number
  /** Time in which the SMSC may deliver the message. When absent, the SMSC decides. */
  readonly validSeconds?: number | undefined
  /** At most 254 bytes; longer texts use `payload`. */
  readonly content: Buffer
  readonly payload?: Buffer
}

/** The body of submit_sm; deliver_sm has the same. */
export function encodeShortMessage(message: ShortMessage): Buffer {
  const { source, destination, esmClass, registeredDelivery, dataCoding } = message
  const { validSeconds, content, payload } = message
  const protocolAndPriority = [0, 0]
  return Buffer.concat([
    text(''),
    Buffer.from([source.ton, source.npi]),
    text(source.digits),
    Buffer.from([destination.ton, destination.npi]),
    text(destination.digits),
    Buffer.from([esmClass, ...protocolAndPriority]),
    text(''),
    text(validSeconds === undefined ? '' : relativeTime(validSeconds)),
    Buffer.from([registeredDelivery, 0, dataCoding, 0, content.length]),
    content,
    ...(payload ? [encodeTlv(tlv.messagePayload, payload)] : []),
  ])
}

/** `YYMMDDhhmmss000R` (7.1.1): a time relative to now, shorter than any month. */
function relativeTime(seconds: number): string {
  const parts = [seconds / 86_400, (seconds / 3_600) % 24, (seconds / 60) % 60, seconds % 60]
  const [days, hours, minutes, rest] = parts.map((part) =>
    String(Math.floor(part)).padStart(2, '0'),
  )
  return `0000${days}${hours}${minutes}${rest}000R`
}

export const longestRelativeSeconds = 28 * 86_400

/** Optional parameters: two bytes of tag, two of length, the value. */
export const tlv = {
  receiptedMessageId: 0x001e,
  messagePayload: 0x0424,
  messageState: 0x0427,
} as const

function encodeTlv(tag: number, value: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt16BE(tag, 0)
  head.writeUInt16BE(value.length, 2)
  return Buffer.concat([head, value])
}

export interface Delivered {
  readonly esmClass: number
  readonly dataCoding: number
  readonly content: Buffer
  /** The addresses of sender and recipient. A receipt comes from the phone, at some SMSCs in the other direction. */
  readonly addresses: readonly string[]
  readonly tlvs: ReadonlyMap<number, Buffer>
}

/** The body of deliver_sm or data_sm; undefined when it is cut short. */
export function decodeDelivered({ commandId, body }: Pdu): Delivered | undefined {
  try {
    const sourceAt = skipText(body, 0) + 2
    const destinationAt = skipText(body, sourceAt) + 2
    let at = skipText(body, destinationAt)
    const addresses = [sourceAt, destinationAt].map((start) => decodeText(body.subarray(start)))
    const esmClass = body.readUInt8(at)
    let content: Buffer = Buffer.alloc(0)
    const isShort = commandId === command.deliverSm
    if (isShort) at = skipText(body, skipText(body, at + 3))
    const dataCoding = body.readUInt8(at + 2)
    at += 3
    if (isShort) {
      const length = body.readUInt8(at + 1)
      at += 2 + length
      content = body.subarray(at - length, at)
      if (content.length < length) return undefined
    }
    return { esmClass, dataCoding, content, addresses, tlvs: decodeTlvs(body.subarray(at)) }
  } catch {
    return undefined
  }
}

function decodeTlvs(bytes: Buffer): Map<number, Buffer> {
  const tlvs = new Map<number, Buffer>()
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = bytes.readUInt16BE(at + 2)
    tlvs.set(bytes.readUInt16BE(at), bytes.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return tlvs
}

/** Text up to its zero byte, or up to the end if the peer sent no zero byte. */
export function decodeText(bytes: Buffer): string {
  const end = bytes.indexOf(0)
  return bytes.toString('latin1', 0, end < 0 ? bytes.length : end)
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`, 'latin1')
}

function skipText(bytes: Buffer, at: number): number {
  const end = bytes.indexOf(0, at)
  if (end < 0) throw new RangeError('text without end')
  return end + 1
}
