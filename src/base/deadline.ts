/**
 * The end of one attempt: the caller's signal or the time limit, whichever comes first.
 *
 * AbortSignal.any and AbortSignal.timeout leave their timers and followers to the garbage collector. At thousands of
 * sends a second they pile up. Here `clear` removes everything at once.
 */
export function startDeadline(
  outer: AbortSignal,
  timeoutMs: number,
): { readonly signal: AbortSignal; restart(timeoutMs: number): void; clear(): void } {
  const controller = new AbortController()
  const end = () => controller.abort()
  let stop = startCountdown(timeoutMs, end)
  outer.addEventListener('abort', end, { once: true })
  if (outer.aborted) end()
  return {
    signal: controller.signal,
    /** Begins another time limit in place of the first one. */
    restart(timeoutMs) {
      stop()
      stop = startCountdown(timeoutMs, end)
    },
    clear() {
      stop()
      outer.removeEventListener('abort', end)
    },
  }
}

const countdownParts = 5

/**
 * Calls `onEnd` after `timeoutMs` of time in which this process runs, unless the returned function is called before.
 *
 * A process that is busy, frozen or without a core can't read an answer. That time proves nothing about a server. So
 * each countdown has several timers in sequence: one long standstill ends one part at most. After each part the event
 * loop reads its sockets.
 */
export function startCountdown(timeoutMs: number, onEnd: () => void): () => void {
  let stop: () => void
  function startPart(left: number): void {
    const timer = setTimeout(endPart, timeoutMs / countdownParts, left)
    stop = () => clearTimeout(timer)
  }
  function endPart(left: number): void {
    const turn = setImmediate(() => (left > 1 ? startPart(left - 1) : onEnd()))
    stop = () => clearImmediate(turn)
  }
  startPart(countdownParts)
  return () => stop()
}

/**
 * Returns the result of `work`, or the result of `late` if a countdown of `timeoutMs` ends first. `work` then goes on,
 * and its result is dropped.
 */
export async function orLate<Result>(
  work: Promise<Result>,
  timeoutMs: number,
  late: () => Result,
): Promise<Result> {
  let stop = () => {}
  const deadline = new Promise<void>((resolve) => {
    stop = startCountdown(timeoutMs, resolve)
  }).then(late)
  try {
    return await Promise.race([work, deadline])
  } finally {
    stop()
  }
}
