/** Keeps this process busy, so that it can't read the answers of servers. */
export function beBusy(durationMs: number): void {
  const untilMs = performance.now() + durationMs
  while (performance.now() < untilMs);
}
