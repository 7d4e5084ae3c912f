/** Places in what a vendor sends: JSON pointers (RFC 6901) into a body of JSON, or into the fields of a form. */
import { parseJson } from '../base/json.ts'

export const isPointer = (text: string): boolean => /^(\/([^~/]|~[01])*)*$/.test(text)

/** The value at a place; undefined if there is none. */
export function valueAt(document: unknown, pointer: string): unknown {
  const keys = pointer
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  let value = document
  for (const key of keys) {
    const isList = Array.isArray(value)
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    if (isList && !/^(0|[1-9]\d*)$/.test(key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

/** The text of a single value at a place; undefined for lists, objects and absent values. */
export function textAt(document: unknown, pointer: string): string | undefined {
  const value = valueAt(document, pointer)
  return value === undefined || (typeof value === 'object' && value !== null)
    ? undefined
    : String(value)
}

/** A body of JSON, otherwise its fields as a form. */
export function readBody(body: string, contentType: unknown): unknown {
  const isForm = String(contentType).startsWith('application/x-www-form-urlencoded')
  const value = isForm ? undefined : parseExact(body)
  return value === undefined ? Object.fromEntries(new URLSearchParams(body)) : value
}

/**
 * JSON whose long numbers stay as they are written. An id of twenty digits would lose the last ones as a number of
 * JavaScript. Reading each value takes five times as long, so it is done only for a text with so many digits.
 */
export function parseExact(text: string): unknown {
  const hasLong = /\d{16}/.test(text)
  return parseJson(
    text,
    hasLong ? (_, value, { source }) => (isInexact(value) ? source : value) : undefined,
  )
}

const isInexact = (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
