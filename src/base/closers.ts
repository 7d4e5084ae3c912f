/**
 * Closes resources in the reverse order of opening. Every closer runs, even after an earlier one failed. The first
 * failure is reported. Closing twice closes once.
 */
export type Closers = ReturnType<typeof createClosers>

export function createClosers() {
  const closers: (() => unknown)[] = []
  let closing: Promise<void> | undefined

  async function closeAll(): Promise<void> {
    const failures: unknown[] = []
    for (const close of closers.reverse()) {
      try {
        await close()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  return {
    onClose(close: () => unknown): void {
      closers.push(close)
    },
    close(): Promise<void> {
      closing ??= closeAll()
      return closing
    },
  }
}
