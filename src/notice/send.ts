import { type Caller, originOf } from '../rules/caller.ts'
import type { Quota } from '../rules/quota.ts'
import { invalidRequest } from '../rules/refused.ts'
import type { ReadMessage, SendAsked, SendOutcome } from './message.ts'
import type { OncePerKey } from './once-per-key.ts'
import type { Send } from './pipeline.ts'

export interface NoticeAsked extends SendAsked {
  /** Time to live in milliseconds; the policy file's default if absent. */
  ttl?: number | undefined
  /** ISO 8601, at most 7 days ahead. A past time means now, because the caller's clock may be slow. */
  sendAt?: string | undefined
}

export type SendNotice = ReturnType<typeof createSendNotice>

const furthestRetryMs = 7 * 86_400_000
const policy = 'notice'

export function createSendNotice(deps: {
  readMessage: ReadMessage
  oncePerKey: Pick<OncePerKey, 'answerBy'>
  quota: Pick<Quota, 'fieldsOf'>
  send: Send
  ttlMs: number
  /** PostgreSQL's time. */
  nowMs: () => number
}) {
  const { readMessage, oncePerKey, quota, send, nowMs } = deps

  /** Throws Unavailable if Redis or PostgreSQL is out of reach; then the uses of the send are given back. */
  return async function sendNotice(asked: NoticeAsked, caller: Caller): Promise<SendOutcome> {
    const answerBy = oncePerKey.answerBy()
    const { channel, template, ttl: ttlMs = deps.ttlMs } = asked
    const message = readMessage('notice', asked, caller)
    if ('outcome' in message) return message
    const { to, locale, country, params, providers } = message
    const sendAt = asked.sendAt === undefined ? undefined : new Date(asked.sendAt)
    const sendRetryMs = (sendAt?.getTime() ?? 0) - nowMs()
    if (sendRetryMs > furthestRetryMs) return invalidRequest('sendAt', 'tooFarAhead')
    const ahead = sendRetryMs > 0 ? { sendAt } : {}
    const { app } = caller
    const named = { app, kind: 'notice', channel, to, template, locale } as const
    const draft = { ...named, ttlMs, providers, ...ahead }
    const fields = quota.fieldsOf(draft, params, originOf(caller, asked.ip, country))
    const sending = { draft, params, caller, policy, fields, asked, answerBy }
    return send(sending, { answer: async () => ({ template }) })
  }
}
