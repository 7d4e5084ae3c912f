import { randomInt } from 'node:crypto'

/** A code of `length` decimal digits, every one of them equally likely, leading zeros included. */
export function drawCode(length: number): string {
  return String(randomInt(10 ** length)).padStart(length, '0')
}
