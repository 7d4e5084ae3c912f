/**
 * Sends a code. It is remembered before its notice is made, because a code must never be sent before
 * it can pass.
 */
import type { Accept, AcceptOutcome, SendRequest } from '../notice/accept.ts'
import { drawCode } from './code.ts'
import type { CodeStore } from './code-store.ts'

export interface CaptchaRequest extends Omit<SendRequest, 'kind' | 'ttlMs' | 'sendAt'> {
  scene: string
}

export type SendCaptcha = ReturnType<typeof createSendCaptcha>

export function createSendCaptcha(deps: {
  accept: Accept
  codes: CodeStore
  code: { length: number; ttlMs: number }
}) {
  const { accept, codes, code } = deps

  /** Throws Unavailable when Redis or PostgreSQL is out of reach; nothing was taken then. */
  return function sendCaptcha(request: CaptchaRequest): Promise<AcceptOutcome> {
    return accept(
      { ...request, kind: 'captcha', ttlMs: code.ttlMs },
      async (notice) => {
        const digits = drawCode(code.length)
        await codes.remember(request, notice.id, digits)
        return { ...request.params, code: digits, minutes: Math.ceil(code.ttlMs / 60_000) }
      },
      (notice) => codes.forget(request, notice.id),
    )
  }
}
