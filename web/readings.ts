/** Reads texts of people and of the service. */
import type { Channel } from './channels.ts'

/**
 * Converts the digits of every script to 0 to 9, and all dashes to `-`. Contacts and chats add invisible characters to a
 * number, which are removed.
 */
export const asciiDigits = (text: string) =>
  text
    .normalize('NFKC')
    .replace(/[\p{Cf}\p{VS}]/gu, '')
    .replace(/[\p{Pd}−]/gu, '-')
    .replace(/\p{Nd}/gu, asciiDigitOf)

/** The ten digits of a script are consecutive in Unicode. */
function asciiDigitOf(digit: string): string {
  const point = digit.codePointAt(0) as number
  let zero = point
  while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--
  return `${(point - zero) % 10}`
}

/** Only the digits, in any script, as 0 to 9. */
export const digitsIn = (text: string) => asciiDigits(text).replace(/\D/g, '')

/**
 * The code, or its first digits, in a text that was typed, pasted or filled in. Undefined if that is uncertain, because a
 * wrong code costs a try. In a message, the code is the only number of exactly `length` digits.
 */
export function codeIn(written: string, length: number): string | undefined {
  const text = asciiDigits(written)
  const runsOf = (pattern: RegExp) =>
    new Set((text.match(pattern) ?? []).map(digitsIn).filter((run) => run.length === length))
  const plain = runsOf(/\d+/g)
  // People and messages write `12 34` and `12-34` too.
  const [code, ...others] = plain.size > 0 ? plain : runsOf(/\d(?:[ -]?\d)*/g)
  if (others.length > 0) return undefined
  const digits = digitsIn(text)
  const isPart = /^[\d\s-]*$/.test(text) && digits.length < length
  return code ?? (isPart ? digits : undefined)
}

/** `0:42`, `14:59`, `3:12:00`: understood in every language. */
export function timeLeft(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  const two = (value: number) => `${value % 60}`.padStart(2, '0')
  return `${hours > 0 ? `${hours}:${two(minutes)}` : minutes}:${two(seconds)}`
}

/** The time of day in `inMs` from now, rounded up to a minute, with the day unless it is today. */
export function clockTime(inMs: number, language: string): string {
  const minuteMs = 60_000
  const at = new Date(Math.ceil((Date.now() + inMs) / minuteMs) * minuteMs)
  const isToday = at.toDateString() === new Date().toDateString()
  const day = isToday ? {} : ({ weekday: 'short', day: 'numeric', month: 'short' } as const)
  return at.toLocaleString(language, { hour: 'numeric', minute: '2-digit', ...day })
}

/** Ids are UUIDs of version 7, which begin with their time. */
export const idTimeMs = (id: string) => Number.parseInt(id.replace('-', '').slice(0, 12), 16)

/** A smaller difference between the clocks is ignored. */
const clockToleranceMs = 1_000

/** How far this clock is ahead of the service's, which made the id between `askedAtMs` and now. 0: about equal. */
export function clockAheadMs(id: string, askedAtMs: number): number {
  const nowMs = Date.now()
  const aheadMs = nowMs - idTimeMs(id)
  const isRight = aheadMs > -clockToleranceMs && aheadMs < nowMs - askedAtMs + clockToleranceMs
  return isRight ? 0 : aheadMs
}

/**
 * Facts in a pass: the channel whose code was typed, and how long the server of the site accepts it. Infinity if the pass
 * does not contain that.
 */
export function claimsOf(pass = ''): { lifeMs: number; channel?: Channel } {
  try {
    const payload = pass.split('.')[1]?.replaceAll('-', '+').replaceAll('_', '/') ?? ''
    const { iat, exp, channel } = JSON.parse(atob(payload))
    return { lifeMs: (exp - iat) * 1_000 || Infinity, channel }
  } catch {
    return { lifeMs: Infinity }
  }
}
