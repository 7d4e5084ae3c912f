/**
 * What was opened is closed in the reverse order. Every closer runs even when one before it failed,
 * the first failure is reported, and closing twice closes once.
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
