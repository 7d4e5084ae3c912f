/** A number of rows that refills with time, and can be given more: as many in a second as it has at most. */
export function createAllowance({ most, perSecond }: { most: number; perSecond: number }) {
  let left = most
  let atMs = performance.now()
  /** Rows that `give` can still add in this second. */
  let [givable, secondMs] = [most, atMs]
  function refill(): number {
    const nowMs = performance.now()
    if (nowMs - secondMs >= 1_000) [givable, secondMs] = [most, nowMs]
    left = Math.min(most, left + ((nowMs - atMs) / 1_000) * perSecond)
    atMs = nowMs
    return left
  }
  return {
    has: () => refill() >= 1,
    isFull: () => refill() >= most,
    take(): boolean {
      if (refill() < 1) return false
      left -= 1
      return true
    },
    give(rows: number): void {
      refill()
      const given = Math.min(rows, givable, most - left)
      left += given
      givable -= given
    },
  }
}

export type Allowance = ReturnType<typeof createAllowance>
