import { hash } from 'node:crypto'
import { isObject } from './json.ts'

/**
 * One spelling for one meaning: the bytes that are hashed for the duplicate rule, Redis keys and
 * digests. Plain concatenation is ambiguous (`1`+`23` = `12`+`3`), so every part carries its length.
 */
export function canonical(parts: readonly string[]): string {
  let encoded = ''
  for (const part of parts) encoded += `${part.length}:${part}`
  return encoded
}

/** Like `canonical`, for a record, with JSON values. Keys are sorted at every depth, so their order does not matter. */
export function canonicalRecord(record: Readonly<Record<string, unknown>>): string {
  const parts: string[] = []
  for (const key of Object.keys(record).sort()) parts.push(key, canonicalValue(record[key]))
  return canonical(parts)
}

function canonicalValue(value: unknown): string {
  return isObject(value) ? `{${canonicalRecord(value)}}` : JSON.stringify(value)
}

const longestKey = 1_000

/**
 * Shortens a text for use as the key of a map that strangers fill. V8 gives all texts above 16,383 characters of one
 * length the same hash, so a map of them is as slow as a list.
 */
export function shortKey(text: string): string {
  return text.length <= longestKey ? text : `sha256:${hash('sha256', text, 'base64url')}`
}
