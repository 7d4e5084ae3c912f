import { LimiterUnavailable } from './limiter.ts'

/** A definite word about one call to Redis: its answer, or `LimiterUnavailable` by the deadline. */
export async function withinDeadline<T>(call: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new LimiterUnavailable(`Redis gave no answer within ${deadlineMs} ms`)),
      deadlineMs,
    )
  })
  try {
    return await Promise.race([call, deadline])
  } catch (error) {
    if (error instanceof LimiterUnavailable) throw error
    const message = error instanceof Error ? error.message : String(error)
    throw new LimiterUnavailable(`Redis did not answer: ${message}`, { cause: error })
  } finally {
    clearTimeout(timer)
  }
}
