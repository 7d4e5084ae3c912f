import { channels } from '../../base/channel.ts'
import { defineHttpKind } from '../http-provider.ts'
import { namedResult, otherResult } from './answers.ts'
import { createReceiptReader } from './receipts.ts'
import { createRequestOf } from './request.ts'
import { httpSettings } from './settings.ts'
import { valuesOf } from './template.ts'

/**
 * Any vendor with an HTTP API, without code: the policy file describes its request, its answers and its receipts. Whether
 * the vendor gets the notice id, and detects repeats by it, depends on the description.
 */
export const http = defineHttpKind({
  kind: 'http',
  channels,
  settings: httpSettings,
  channelsOf: (settings) => settings.channels,
  senderOf: ({ from }) => from,
  createReceiptReader,
  connect({ ask, clock }, settings) {
    const requestOf = createRequestOf(settings)
    return {
      async send(message, signal, sender) {
        const call = requestOf(valuesOf(message, sender))
        if (!call) return { kind: 'rejected', detail: 'http: a variable would change the path' }
        const { result, answer } = await ask(call, signal, (answer) =>
          namedResult(settings, answer, clock()),
        )
        return result ?? otherResult(answer)
      },
    }
  },
})
