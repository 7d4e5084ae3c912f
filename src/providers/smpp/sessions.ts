/**
 * The sessions of one provider, at most one for each role. A session begins with the first message. The session that
 * gets receipts also begins by itself, and again after its end, because receipts arrive only over it.
 *
 * Carriers lock out a client that binds with a wrong password again and again. So binds pause after a refusal, longer
 * with each. A session that ended because the SMSC flooded it counts as a refusal. The refusal of one role stops only that
 * role: an SMSC may allow fewer receivers than transmitters. A wrong login stops both.
 */
import { backoffMs } from '../../base/backoff.ts'
import { openSession, type Session } from './session.ts'
import type { Role, SessionOptions } from './session-options.ts'

/** Pause between attempts to connect while nothing is sent. */
const reconnectAfterMs = 1_000

const refusedPause = { firstMs: 1_000, longestMs: 30_000 }
/** Only the operator can correct a wrong password or system id, and a correction needs a restart. */
const wrongLoginPause = { firstMs: 5_000, longestMs: 300_000 }
const wrongLogin = [0x0e, 0x0f]

export function createSessions(
  /** The role that gets receipts. Undefined if the process accepts none. */
  receiving: Role | undefined,
  connectionOf: (role: Role) => Omit<SessionOptions, 'onEnd'>,
) {
  const sessions = new Map<Role, Session>()
  let rebindTimer: NodeJS.Timeout | undefined
  let isClosed = false
  /** `count`: refused binds in a row. */
  const refusals = new Map<
    Role,
    { count: number; reason: string; untilMs: number; isOfLogin: boolean }
  >()

  const refusalOf = (role: Role) =>
    [...refusals].find(
      ([of, { untilMs, isOfLogin }]) => (of === role || isOfLogin) && performance.now() < untilMs,
    )?.[1]

  function open(role: Role): Session {
    const session = openSession({
      ...connectionOf(role),
      onEnd: ({ reason, isRefused, bindStatus }) => {
        if (isRefused) {
          const isOfLogin = wrongLogin.includes(bindStatus ?? 0)
          const pause = isOfLogin ? wrongLoginPause : refusedPause
          const count = (refusals.get(role)?.count ?? 0) + 1
          const untilMs = performance.now() + backoffMs(count, pause.firstMs, pause.longestMs)
          refusals.set(role, { count, reason, untilMs, isOfLogin })
        }
        if (role === receiving) stayBound()
      },
    })
    sessions.set(role, session)
    return session
  }

  function stayBound(): void {
    if (isClosed || !receiving) return
    clearTimeout(rebindTimer)
    const refusedForMs = (refusalOf(receiving)?.untilMs ?? 0) - performance.now()
    rebindTimer = setTimeout(
      () => {
        // A timer can end shortly before its time, and a bind of the other role may have been refused meanwhile.
        if (typeof current(receiving) === 'string') stayBound()
      },
      Math.max(reconnectAfterMs, refusedForMs),
    )
  }

  /** The session of this role, or the reason why there must be none now. */
  function current(role: Role): Session | string {
    const before = sessions.get(role)
    if (before && !before.isEnded()) return before
    const refusal = refusalOf(role)
    if (refusal) return refusal.reason
    if (role === receiving) clearTimeout(rebindTimer)
    return open(role)
  }

  if (receiving) open(receiving)

  return {
    current,
    /** The SMSC takes messages or reports their delivery. */
    works(role: Role): void {
      const refusal = refusals.get(role)
      if (refusal) refusal.count = 0
    },
    async close(): Promise<void> {
      isClosed = true
      clearTimeout(rebindTimer)
      await Promise.all([...sessions.values()].map((session) => session.close()))
    },
  }
}
