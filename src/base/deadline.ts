/**
 * The end of one attempt: whichever comes first of the caller's signal and our own time limit.
 *
 * Not AbortSignal.any and AbortSignal.timeout: those leave their timers and followers to the garbage
 * collector, and at thousands of sends a second they pile up. `clear` ends everything at once.
 */
export interface Deadline {
  readonly signal: AbortSignal
  /** Ends the attempt now. */
  end(): void
  clear(): void
}

export function startDeadline(outer: AbortSignal, timeoutMs: number): Deadline {
  const controller = new AbortController()
  const end = () => controller.abort()
  const timer = setTimeout(end, timeoutMs)
  outer.addEventListener('abort', end, { once: true })
  if (outer.aborted) end()
  return {
    signal: controller.signal,
    end,
    clear() {
      clearTimeout(timer)
      outer.removeEventListener('abort', end)
    },
  }
}

/** Waits, or stops waiting at the signal; true when the whole time has passed. */
export function waitMs(durationMs: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false)
    const stop = () => {
      clearTimeout(timer)
      resolve(false)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve(true)
    }, durationMs)
    signal.addEventListener('abort', stop, { once: true })
  })
}

/**
 * What the work comes to, or after `timeoutMs` what `late` returns or throws; the work goes on unheard. After a time
 * in which this process itself was busy the timer is told before an answer that has long arrived: that is read first.
 */
export async function orLate<Result>(
  work: Promise<Result>,
  timeoutMs: number,
  late: () => Result,
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(() => setImmediate(resolve), timeoutMs)
  }).then(late)
  try {
    return await Promise.race([work, deadline])
  } finally {
    clearTimeout(timer)
  }
}
