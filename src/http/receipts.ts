import type { OptOut } from '../base/opt-out.ts'
import { Problem } from '../base/problems.ts'
import type { Receipt, ReceiptReader } from '../base/receipt.ts'
import type { NoticeMetrics } from '../notice/metrics.ts'
import { invalid } from './problem.ts'
import { unavailable } from './respond.ts'
import { defineRoute, type Route, type RouteRequest } from './route.ts'

/**
 * The address to which providers send receipts. There is no API key: the vendor signs in its own way. It gets its
 * expected answer after the receipts are in the database.
 */
export function receiptRoutes(deps: {
  /** Readers by provider name, for provider kinds with receipts over HTTP. */
  readers: ReadonlyMap<string, ReceiptReader>
  /** Resolves when the receipts are in the database. */
  takeReceipts: (provider: string, receipts: readonly Receipt[]) => Promise<void>
  takeOptOut: (provider: string, optOut: OptOut) => Promise<void>
  metrics: Pick<NoticeMetrics, 'receipts'>
}): [Route, Route] {
  const { readers, takeReceipts, takeOptOut, metrics } = deps

  function readerOf(provider = ''): ReceiptReader {
    const reader = readers.get(provider)
    if (!reader) throw new Problem('not_found')
    return reader
  }
  function refused(provider: string, reason: 'forged' | 'malformed'): Problem {
    metrics.receipts.inc({ provider, result: reason })
    return reason === 'malformed'
      ? invalid('', 'noReceipt')
      : new Problem('forbidden', {}, {}, 'notSigned')
  }

  async function take({ params, headers, rawBody, query, note, admit }: RouteRequest) {
    const { provider = '' } = params
    note({ provider })
    const request = { headers, rawBody, query, receivedAt: Date.now() }
    const reader = readerOf(provider)
    if ((await reader.fetchProof?.(request)) === false) throw unavailable()
    const parsed = reader.parse(request)
    if (!parsed.ok) throw refused(provider, parsed.reason)
    admit()
    if ((await reader.confirm?.(request)) === false) throw unavailable()
    await takeReceipts(provider, parsed.receipts)
    for (const optOut of parsed.optOuts ?? []) await takeOptOut(provider, optOut)
    const { status, contentType, body } = parsed.reply
    return { status, headers: { 'content-type': contentType }, text: body }
  }

  const byBody = defineRoute({
    method: 'post',
    path: '/v1/receipts/:provider',
    name: 'takeReceipts',
    summary: "A provider's report on delivery, with the signature of that provider.",
    access: 'open',
    admitBody({ params, headers, query }) {
      const { provider = '' } = params
      const reader = readerOf(provider)
      if (!reader.mayBeGenuine({ headers, query, receivedAt: Date.now() })) {
        throw refused(provider, 'forged')
      }
      return reader.maxBodyBytes
    },
    answers: {
      200: { description: 'Stored. Status and body are as this vendor expects.' },
      204: { description: 'Stored, for the webhook provider.' },
    },
    problems: ['forbidden', 'not_found', 'invalid_request', 'payload_too_large'],
    run: take,
  })

  const byQuery = defineRoute({
    method: 'get',
    path: '/v1/receipts/:provider',
    name: 'takeReceipt',
    summary: "A provider's report on delivery as a query, from providers that send it so.",
    access: 'open',
    hasNoHead: true,
    answers: { 200: { description: 'Stored. The body is as this vendor expects.' } },
    problems: ['forbidden', 'not_found', 'invalid_request'],
    async run(request) {
      const { params, headers, query } = request
      const { provider = '' } = params
      const reader = readerOf(provider)
      if (!reader.readsQuery) throw new Problem('not_found')
      if (!reader.mayBeGenuine({ headers, query, receivedAt: Date.now() })) {
        throw refused(provider, 'forged')
      }
      return take(request)
    },
  })
  return [byBody, byQuery]
}
