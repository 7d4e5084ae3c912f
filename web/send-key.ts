/** A repeat after it means another code. */
const repeatWithinMs = 60_000

/** A code that is asked for. */
export interface Asked {
  about: string
  /** Under it nothing is sent twice. Without https there is none, and a repeat may send twice. */
  key: string
  sinceMs: number
}

/** A send whose answer has not come may have been done all the same: its repeat goes under its key. */
export function askedFor(about: string, unanswered: Asked | undefined): Asked {
  const nowMs = Date.now()
  const isRepeat = unanswered?.about === about && nowMs - unanswered.sinceMs < repeatWithinMs
  return isRepeat ? unanswered : { about, key: crypto.randomUUID?.() ?? '', sinceMs: nowMs }
}
