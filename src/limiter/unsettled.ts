/**
 * Requests whose outcome nobody was told: the caller got `LimiterUnavailable`, so nothing may stay
 * taken. Their ids are kept here until Redis answers again, and are then released, which does nothing
 * if the request was never carried out. A caller who asks again with the same id takes it out of here:
 * that request is no longer given up. Bounded in number and time; what is dropped expires by itself.
 */
export type Unsettled = ReturnType<typeof createUnsettled>

export function createUnsettled(options: { maxAgeMs: number; maxRequests: number }) {
  const { maxAgeMs, maxRequests } = options
  const requests = new Map<string, { expiresAt: number; release: () => Promise<unknown> }>()
  const retryMs = 200
  let timer: NodeJS.Timeout | undefined

  async function settle(): Promise<void> {
    for (const [id, { expiresAt, release }] of requests) {
      if (performance.now() < expiresAt) {
        try {
          await release()
        } catch {
          break // Redis is still away: the rest would only wait for the same deadline.
        }
      }
      requests.delete(id)
    }
    timer = requests.size > 0 ? schedule() : undefined
  }

  function schedule(): NodeJS.Timeout {
    return setTimeout(() => void settle(), retryMs).unref()
  }

  return {
    add(id: string, release: () => Promise<unknown>): void {
      if (requests.size >= maxRequests) requests.delete(requests.keys().next().value as string)
      requests.set(id, { expiresAt: performance.now() + maxAgeMs, release })
      timer ??= schedule()
    },
    /** The caller has taken this request up again. */
    remove(id: string): void {
      requests.delete(id)
    },
    close(): void {
      clearTimeout(timer)
      requests.clear()
    },
  }
}
