import type { ReceiptRequest } from '../../src/base/receipt.ts'
import type { Message } from '../../src/providers/provider.ts'
import { type Conformance, type ConformanceCase, withProvider } from './conformance.ts'
import { type HttpFarEnd, startHttpFarEnd, type Vendor } from './far-ends/http.ts'
import { testConformance } from './test-conformance.ts'

export const never: AbortSignal = new AbortController().signal
export const forged = { ok: false, reason: 'forged' }
export const malformed = { ok: false, reason: 'malformed' }
/** A `send` without a call. */
export const rejectedUnsent = { result: { kind: 'rejected' }, requests: [] }

interface VendorCase<End> {
  readonly default: ConformanceCase['default']
  readonly conformance: Omit<Conformance, 'startFarEnd'> & { startFarEnd(): Promise<End> }
}

/** Settings in place of settings of the case. They may name the port of the far end. */
type Settings = object | ((port: number) => object)

type Request = Partial<Omit<ReceiptRequest, 'rawBody'>> & { readonly settings?: object }

/** Tests the promises of every kind for a vendor over HTTP, and returns the calls that its other tests are made of. */
export function testVendor<End extends HttpFarEnd>({
  default: kind,
  conformance,
}: VendorCase<End>) {
  testConformance({ default: kind, conformance })
  const message: Message = { ...conformance.message, noticeId: 'n-1' }
  /** `answer` replaces the far end of the case. */
  const given = (settings: Settings, answer?: Vendor) => ({
    default: kind,
    conformance: {
      settings: (port: number) => ({
        ...conformance.settings(port),
        ...(typeof settings === 'function' ? settings(port) : settings),
      }),
      startFarEnd: () =>
        answer ? (startHttpFarEnd(answer) as Promise<End>) : conformance.startFarEnd(),
    },
  })
  function readerWith(settings: object = {}) {
    const reader = kind.createReceiptReader?.(
      kind.settings.parse({ ...conformance.settings(1), ...settings }),
    )
    if (!reader) throw new Error(`${kind.kind} reads no receipts`)
    return reader
  }
  return {
    message,
    /** A provider and its far end, until `run` ends. */
    withVendor: <Value>(run: Parameters<typeof withProvider<End, Value>>[1], answer?: Vendor) =>
      withProvider(given({}, answer), run),
    /** The result of one message with these members, and what its far end got. */
    send: (more: Partial<Message> = {}, settings: Settings = {}, answer?: Vendor) =>
      withProvider(given(settings, answer), async (provider, farEnd) => {
        const result = await provider.send({ ...message, ...more }, never)
        return { ...farEnd, result }
      }),
    readerWith,
    /** The answer of the reader of receipts to a body: a text, a form, or a value that is sent as JSON. */
    read(body: unknown, { settings, ...request }: Request = {}) {
      const isText = typeof body === 'string' || body instanceof URLSearchParams
      const rawBody = Buffer.from(isText ? body.toString() : JSON.stringify(body))
      const usual = { headers: {}, query: {}, receivedAt: Date.now() }
      return readerWith(settings).parse({ ...usual, ...request, rawBody })
    },
  }
}
