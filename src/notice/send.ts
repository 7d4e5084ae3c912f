/**
 * Sends a notice. First the limits decide, so that a refusal costs nothing. Then its row is committed: from here on, the
 * message will be sent. If the commit fails, the uses are given back.
 */
import type { CanReach } from '../recipient/mail-domains.ts'
import { type Caller, originOf } from '../rules/caller.ts'
import type { Fields, Quota } from '../rules/quota.ts'
import { invalidRequest, limitedBy } from '../rules/refused.ts'
import type { CreatedNotice, CreateNotice, Params, PreparedNotice } from './create.ts'
import {
  type Accepted,
  acceptedAs,
  type ReadMessage,
  type SendAsked,
  type SendOutcome,
} from './message.ts'
import type { OncePerKey } from './once-per-key.ts'
import type { NoticeStore } from './store.ts'

export interface NoticeAsked extends SendAsked {
  /** Time to live in milliseconds; the policy file's default if absent. */
  ttl?: number | undefined
  /** ISO 8601, at most 7 days ahead. A past time means now, because the caller's clock may be slow. */
  sendAt?: string | undefined
}

export type SendNotice = ReturnType<typeof createSendNotice>

const furthestAheadMs = 7 * 86_400_000

export function createSendNotice(deps: {
  readMessage: ReadMessage
  oncePerKey: OncePerKey
  quota: Quota
  createNotice: CreateNotice
  store: Pick<NoticeStore, 'adopt'>
  ttlMs: number
  canReach: CanReach
  /** PostgreSQL's time. */
  nowMs: () => number
}) {
  const { readMessage, oncePerKey, quota, createNotice, store, canReach, nowMs } = deps
  const policy = 'notice'

  /** Throws Unavailable if Redis or PostgreSQL is out of reach; then the uses of the send are given back. */
  return async function sendNotice(asked: NoticeAsked, caller: Caller): Promise<SendOutcome> {
    const answerBy = oncePerKey.answerBy()
    const { app } = caller
    const { channel, template, ttl: ttlMs = deps.ttlMs } = asked
    const message = readMessage('notice', asked, caller)
    if ('outcome' in message) return message
    const { to, locale, country, params } = message
    const sendAt = asked.sendAt === undefined ? undefined : new Date(asked.sendAt)
    const aheadMs = (sendAt?.getTime() ?? 0) - nowMs()
    if (aheadMs > furthestAheadMs) return invalidRequest('sendAt', 'tooFarAhead')
    const ahead = aheadMs > 0 ? { sendAt } : {}
    const draft = { app, kind: 'notice', channel, to, template, locale, ttlMs, ...ahead } as const
    const fields = quota.fieldsOf(draft, params, originOf(caller, asked.ip, country))
    const begun = await oncePerKey.begin('notice', asked, caller, answerBy)
    if ('outcome' in begun) return begun
    let outcome: SendOutcome | undefined
    try {
      if (begun.earlierId) outcome = await adopt({ ...draft, id: begun.earlierId }, fields)
      outcome ??= await make({ ...draft, id: await begun.newId() }, params, fields, answerBy)
      return outcome
    } finally {
      await begun.end(outcome)
    }
  }

  /** The answer for the notice of an earlier request, if that notice was sent or will be sent. Takes no quota. */
  async function adopt(notice: PreparedNotice, fields: Fields): Promise<Accepted | undefined> {
    const row = await store.adopt(notice.app, notice.id)
    if (!row) return undefined
    const waitMs = await quota.nextInMs(policy, fields)
    return acceptedOf({ ...notice, ...row }, nowMs() + waitMs)
  }

  async function make(
    notice: PreparedNotice,
    params: Params,
    fields: Fields,
    answerBy: number,
  ): Promise<SendOutcome> {
    const decision = await quota.acquire(policy, fields, notice.id)
    if (!decision.admitted) return limitedBy(policy, decision)
    let created: CreatedNotice | undefined
    let isReached = true
    try {
      isReached = await canReach(notice)
      if (!isReached) {
        quota.releaseUnsent(policy, fields, notice.id)
        return { outcome: 'invalid_recipient', because: 'no_server' }
      }
      created = await createNotice(notice, params, answerBy - performance.now())
      return acceptedOf(created, created.createdAt.getTime() + decision.nextInMs)
    } finally {
      if (!created && isReached) quota.release(policy, fields, notice.id)
    }
  }
}

function acceptedOf(notice: Omit<CreatedNotice, 'createdAt'>, resendAtMs: number): Accepted {
  return acceptedAs(notice, { template: notice.template }, resendAtMs)
}
