/**
 * Bytes that arrive in parts, in one buffer. A list of parts of one byte would need a hundred times their memory. It
 * would also keep the memory from which each part was cut.
 */
export function createGrowingBuffer() {
  let buffer = Buffer.alloc(0)
  let start = 0
  let end = 0
  return {
    append(part: Buffer): void {
      const length = end - start + part.length
      if (end + part.length > buffer.length) {
        const target =
          length > buffer.length ? Buffer.alloc(Math.max(length, 2 * buffer.length)) : buffer
        buffer.copy(target, 0, start, end)
        end -= start
        start = 0
        buffer = target
      }
      part.copy(buffer, end)
      end += part.length
    },
    /** The bytes, until the next call of `append`. */
    bytes: () => buffer.subarray(start, end),
    /** Removes the first bytes. */
    drop(count: number): void {
      start += count
    },
  }
}
