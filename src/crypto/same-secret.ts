import { timingSafeEqual } from 'node:crypto'

/** Compares two secrets without telling by its time how much of them agrees. */
export function isSameSecret(given: string, expected: string): boolean {
  const a = Buffer.from(given)
  const b = Buffer.from(expected)
  return a.length === b.length && timingSafeEqual(a, b)
}
