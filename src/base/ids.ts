import { randomUUID } from 'node:crypto'

/**
 * Notice ids are UUIDs of version 7 (RFC 9562), which begin with their time. So new rows land at the end of the index. A
 * page of results needs no second sort key, and a month of rows is a range of ids.
 */
export function newId(nowMs: number = Date.now()): string {
  const time = nowMs.toString(16).padStart(12, '0')
  // After its version digit, a random UUID of version 4 satisfies version 7 too.
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

/** The lowest id of this time: above every id of an earlier time. */
export function idFloor(timeMs: number): string {
  const time = timeMs.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`
}

export function isId(text: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(text)
}

/** True if an id from a provider is safe to store: printable ASCII, at most 200 characters. */
export function isForeignId(value: unknown): value is string {
  return typeof value === 'string' && /^[\x20-\x7e]{1,200}$/.test(value)
}
