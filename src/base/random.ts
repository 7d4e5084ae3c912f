import { randomFillSync } from 'node:crypto'

const poolBytes = 4_096
const pool = Buffer.alloc(poolBytes)
let used = poolBytes

/** Fresh random bytes, cut from a larger draw, because every draw costs a system call. */
export function takeRandomBytes(count: number): Buffer {
  if (used + count > poolBytes) {
    randomFillSync(pool)
    used = 0
  }
  const bytes = Buffer.from(pool.subarray(used, used + count))
  used += count
  return bytes
}
