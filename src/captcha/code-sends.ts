/** The common parts of all sends of codes, to one address or by a way of a verification. */
import { randomInt } from 'node:crypto'
import { type Links, linkOf } from '../notice/code-link.ts'
import type { Params } from '../notice/create.ts'
import type { Accepted, Message, ReadMessage, SendAsked } from '../notice/message.ts'
import type { OncePerKey } from '../notice/once-per-key.ts'
import { createValidityText, minutesOf } from '../notice/validity-text.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import { type Caller, type Lane, type Origin, originOf } from '../rules/caller.ts'
import type { GuessLimits } from '../rules/guess-limits.ts'
import { pagePolicy } from '../rules/policies.ts'
import type { Fields, LimitFacts, Quota } from '../rules/quota.ts'
import { type Limited, limitedBy, type Refused } from '../rules/refused.ts'
import type { Challenges } from './challenges.ts'

/** The members of a request that all sends of codes share. */
export interface CodeAsked extends Omit<SendAsked, 'channel'> {
  /** The purpose of the code. */
  scene: string
  /** The policy of the limit check; `captcha` if absent. */
  policy?: string | undefined
  /** The answer to a challenge, from callers in pages. */
  challenge?: string | undefined
  /** The token of a known browser. */
  known?: string | undefined
}

export interface CodeSendDeps {
  readMessage: ReadMessage
  oncePerKey: Pick<OncePerKey, 'isNew'>
  quota: Pick<Quota, 'fieldsOf' | 'remembersRefusal' | 'acquireAndRelease'>
  guessLimits: Pick<GuessLimits, 'refundOf' | 'waitMsOf'>
  challenges: Pick<Challenges, 'refuse'>
  code: { length: number; ttlMs: number }
  links: Links
  testRecipients: Pick<TestRecipients, 'codeOf'>
}

export function createCodeSends(deps: CodeSendDeps) {
  const { oncePerKey, quota, guessLimits, challenges, code, links } = deps
  const validityIn = createValidityText(code.ttlMs)

  /** Callers in pages know one policy. */
  const refuse = (limited: Limited, caller: Caller): Promise<Refused> =>
    challenges.refuse(caller, caller.isPage ? { ...limited, policy: 'captcha' } : limited)

  return {
    refuse,

    /** The send, with the facts that limits count. */
    countedOf(
      asked: Pick<SendAsked, 'channel'> & Pick<CodeAsked, 'scene' | 'template' | 'ip' | 'policy'>,
      { to, locale, country, params, providers }: Message,
      caller: Caller,
      lane: Lane,
    ) {
      const { channel, scene, template, ip, policy } = asked
      const { app, isPage } = caller
      const named = { app, kind: 'captcha', channel, to, scene, template, locale } as const
      const draft = { ...named, ttlMs: code.ttlMs, providers }
      const origin = originOf(caller, isPage ? undefined : ip, country, lane)
      const fields = quota.fieldsOf(draft, params, origin)
      return { draft, params, origin, fields, policy: isPage ? pagePolicy : (policy ?? 'captcha') }
    },

    /**
     * Refuses a send of a page before its Idempotency-Key is reserved. A request that will be refused must not take a turn.
     * The exception is a repeat, whose key is already known.
     */
    async refuseEarly(
      { policy, fields }: { policy: string; fields: Fields },
      { challenge, idempotencyKey }: Pick<CodeAsked, 'challenge' | 'idempotencyKey'>,
      caller: Caller,
      answerBy: number,
    ): Promise<Refused | undefined> {
      if (!caller.isPage || idempotencyKey === undefined) return undefined
      const isHuman = challenge !== undefined
      const isRefused = quota.remembersRefusal(policy, fields, isHuman)
      const isNew = isRefused && (await oncePerKey.isNew(idempotencyKey, caller, answerBy))
      const refusal = isNew ? await quota.acquireAndRelease(policy, fields, isHuman) : undefined
      return refusal && refuse(limitedBy(policy, refusal), caller)
    },

    drawDigits: () => drawCode(code.length),

    /** The variables of the message. `id`: of the code. */
    paramsOf(scene: string, locale: string, digits: string, id: string): Params {
      const link = linkOf(links, scene, digits, id)
      const time = { minutes: minutesOf(code.ttlMs), validity: validityIn(locale) }
      return { code: digits, ...time, ...(link ? { link } : {}) }
    },

    /** The members of the answer. `given`: digits that were not drawn. */
    async answerOf(
      { draft, origin }: { draft: LimitFacts & { scene: string }; origin: Origin },
      given?: string,
    ): Promise<Partial<Accepted>> {
      // A lock of checks does not refuse a send, but the answer reports it. Left out if Redis gives no answer.
      const lockedForMs = await guessLimits.waitMsOf(draft, origin).catch(() => 0)
      const lock = lockedForMs > 0 ? { lockedForMs } : {}
      return { scene: draft.scene, codeLength: given?.length ?? code.length, ...lock }
    },
  }
}

/** A code of `length` decimal digits. All codes are equally likely, also those with leading zeros. */
export function drawCode(length: number): string {
  return String(randomInt(10 ** length)).padStart(length, '0')
}
