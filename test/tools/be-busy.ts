/** Also while a test has another clock. */
const nowMs = performance.now.bind(performance)

/** Keeps this process busy, so that it can't read the answers of servers. */
export function beBusy(durationMs: number): void {
  const untilMs = nowMs() + durationMs
  while (nowMs() < untilMs);
}
