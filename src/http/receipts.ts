import { Problem } from '../base/problems.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Receipt, Receipts } from '../notice/receipts.ts'
import { defineRoute, type Route } from './route.ts'
import { invalid } from './sending.ts'

/** Vendors send many receipts in one call. */
const maxBodyBytes = 1_048_576

interface ReceiptRequest {
  headers: Readonly<Record<string, string | string[] | undefined>>
  rawBody: Buffer
  query: Readonly<Record<string, unknown>>
  receivedAt: number
}

/** What a provider's kind makes of a request; its folder knows the vendor's signature and form. */
export type ReadReceipts = (request: ReceiptRequest) =>
  | {
      ok: true
      receipts: readonly Receipt[]
      reply: { status: number; contentType: string; body: string }
    }
  | { ok: false; reason: 'forged' | 'malformed' }

/**
 * Where providers tell what became of a message. There is no API key: the vendor signs, in its own way,
 * and hears the answer that it takes for "got it" once the receipts are in the database.
 */
export function receiptRoute(deps: {
  /** By provider name; only those whose kind has receipts over HTTP. */
  readers: ReadonlyMap<string, ReadReceipts>
  receipts: Receipts
  metrics: Metrics
}): Route {
  const { readers, receipts, metrics } = deps
  return defineRoute({
    method: 'post',
    path: '/v1/receipts/:provider',
    name: 'takeReceipts',
    summary: "A provider's word on delivery, signed its own way.",
    access: 'open',
    rawBody: { maxBytes: maxBodyBytes },
    answers: { 200: { description: 'Taken; status and body are what this vendor expects.' } },
    problems: ['forbidden', 'not_found', 'invalid_request', 'payload_too_large'],
    async run({ params, headers, rawBody, query, note }) {
      const provider = params.provider ?? ''
      const read = readers.get(provider)
      if (!read) throw new Problem('not_found')
      note({ provider })
      const parsed = read({ headers, rawBody, query, receivedAt: Date.now() })
      if (!parsed.ok) {
        metrics.receipts.inc({ provider, result: parsed.reason })
        if (parsed.reason === 'malformed') throw invalid('', 'is not a receipt of this provider')
        throw new Problem('forbidden', { message: 'The signature is not that of this provider.' })
      }
      await receipts.take(provider, parsed.receipts)
      const { status, contentType, body } = parsed.reply
      return { status, headers: { 'content-type': contentType }, text: body }
    },
  })
}
