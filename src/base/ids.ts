import { randomUUID } from 'node:crypto'

/** An id of one kind. A plain text is accepted, but not the id of another kind. */
export type Id<Of extends string> = string & { readonly of?: Of }

/** The row of one message. */
export type NoticeId = Id<'notice'>
/** The entry of the code store. */
export type CodeId = Id<'code'>
/** The request that the limiter has counted, by which its uses are given back. */
export type RequestId = Id<'request'>
/** The key by which a caller repeats a send. */
export type IdempotencyKey = Id<'Idempotency-Key'>

/** A code has the id of its notice, if it is for one notice. */
export const codeIdOf = (noticeId: NoticeId): CodeId => noticeId as string
/** A send takes its uses under the id of its notice. */
export const requestIdOf = (noticeId: NoticeId): RequestId => noticeId as string

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
