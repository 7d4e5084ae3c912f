import type { Caller } from '../rules/caller.ts'
import type { FindCaptcha } from './cancel.ts'
import type { CheckAsked, CheckCaptcha, CheckOutcome } from './check.ts'
import type { CodeStore } from './code-store.ts'

type CheckByIdAsked = Omit<CheckAsked, 'channel' | 'to' | 'scene' | 'home'> & {
  id: string
  /** Excludes ids of other scenes. */
  scene?: string | undefined
}

export type CheckById = ReturnType<typeof createCheckById>

/**
 * Checks a code by an id alone: of a verification, or for servers also of one notice. Redis knows verifications, so their
 * checks work while PostgreSQL is away. An unknown id costs no try.
 */
export function createCheckById(deps: {
  codes: Pick<CodeStore, 'findHome'>
  findCaptcha: FindCaptcha
  checkCaptcha: CheckCaptcha
}) {
  const { codes, findCaptcha, checkCaptcha } = deps
  return async function checkById(asked: CheckByIdAsked, caller: Caller): Promise<CheckOutcome> {
    const { app, isPage } = caller
    const home = await codes.findHome(app, asked.id)
    const owner = home ?? (isPage ? null : await findCaptcha(app, asked.id))
    if (!owner || (asked.scene ?? owner.scene) !== owner.scene) {
      return { outcome: 'code_gone', reason: 'unknown' }
    }
    const { channel, to, scene } = owner
    return checkCaptcha({ ...asked, channel, to, scene, ...(home ? { home } : {}) }, caller)
  }
}
