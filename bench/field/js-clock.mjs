/**
 * Imported by the Node processes of a simulated day: `performance.now()` moves with the day's clock. Otherwise what a
 * process remembers for a minute, by its monotonic clock, would be remembered for hours of the day.
 */
const startMs = Date.now()
const real = performance.now.bind(performance)
performance.now = () => real() + Date.now() - startMs
