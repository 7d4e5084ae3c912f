/**
 * Reads the value that the code of a provider returns or throws. That code may belong to a plugin in untyped JavaScript, so
 * each part is checked. Quotes of the message are hidden, because a result goes to rows, logs and operators (I14).
 */
import { isForeignId } from '../base/ids.ts'
import { isObject } from '../base/json.ts'
import { textProblem } from '../base/text-problem.ts'
import type { Message, SendResult } from '../providers/provider.ts'

const maxDetail = 200
/** Shorter waits would call the provider in a loop. */
const shortestRetryAfterMs = 1_000
const longestRetryAfterMs = 86_400_000
/** The wait after `throttled` if the result names none. */
const defaultRetryAfterMs = 10_000
const withDetail = ['rejected', 'invalid_recipient', 'postponed', 'unavailable', 'unknown'] as const

/**
 * Undefined for an invalid result. A message id or a detail that a row can't store is left out, so that the outcome can
 * be stored. Parts of the detail that quote the message are hidden.
 */
export function readResult(given: unknown, message: Quotable): SendResult | undefined {
  if (!isObject(given)) return undefined
  const { kind: named, messageId } = given
  if (named === 'accepted') return { kind: named, ...(isForeignId(messageId) ? { messageId } : {}) }
  const detail = detailIn(given.detail, message)
  const retryAfterMs = waitIn(given.retryAfterMs)
  if (named === 'throttled') {
    return { kind: named, retryAfterMs: retryAfterMs ?? defaultRetryAfterMs, detail }
  }
  const kind = withDetail.find((each) => each === named)
  if (kind === 'invalid_recipient') {
    const suppresses = (['bounced', 'opted_out'] as const).find((one) => one === given.suppresses)
    return {
      kind,
      ...(given.isBarredHere === true ? { isBarredHere: true } : {}),
      ...(suppresses ? { suppresses } : {}),
      detail,
    }
  }
  if (kind === 'postponed' && retryAfterMs !== undefined) return { kind, retryAfterMs, detail }
  return kind && { kind, detail }
}

function detailIn(given: unknown, message: Quotable): string {
  if (typeof given !== 'string' || textProblem(given)) return 'the detail cannot be stored'
  // More is read than stored. Otherwise a quote at the end could be cut and not be found.
  return withoutQuotes(given.slice(0, 2 * maxDetail), message)
    .slice(0, maxDetail)
    .toWellFormed()
}

function waitIn(given: unknown): number | undefined {
  if (typeof given !== 'number' || Number.isNaN(given)) return undefined
  return Math.min(Math.max(given, shortestRetryAfterMs), longestRetryAfterMs)
}

/** The message of a call. A query of a provider knows only the recipient. */
export type Quotable = Pick<Message, 'to'> & Partial<Pick<Message, 'text' | 'variables'>>

const hidden = '***'
const quoted = 'hidden, because it quotes the message'
/** Shorter values can occur in any text by accident. */
const leastValue = 4
/** A provider names times too: "try again in 5 minutes". */
const times = ['minutes', 'validity']
/** So many characters in common are no accident. */
const leastQuote = 20
/** Country codes and separators differ, so the end of a number identifies it. */
const endOfNumber = 8

/**
 * Hides the recipient, the variables and the text of a message in a provider's text. An error of a provider may quote the
 * request, and it goes to rows, logs and operators (I14). If a quote can't be cut out, the whole text is replaced.
 */
export function withoutQuotes(
  written: string,
  { to, text = '', variables = {} }: Quotable,
): string {
  const personal = Object.keys(variables).filter((name) => !times.includes(name))
  const values = [to, to.toLowerCase(), ...personal.map((name) => variables[name] ?? '')].filter(
    (value) => value.length >= leastValue,
  )
  const left = values.reduce((rest, value) => rest.replaceAll(value, hidden), withoutNumber())
  const lower = left.toLowerCase()
  const isQuoted = values.some((value) => lower.includes(value.toLowerCase())) || sharesText(left)
  return isQuoted ? quoted : left

  function withoutNumber(): string {
    const end = digitsOf(to).slice(-endOfNumber)
    if (to.includes('@') || end.length < endOfNumber) return written
    return written.replace(/[\d\s().+-]{7,}/g, (part) => {
      if (!digitsOf(part).includes(end)) return part
      return `${part.startsWith(' ') ? ' ' : ''}${hidden}${part.endsWith(' ') ? ' ' : ''}`
    })
  }

  function sharesText(rest: string): boolean {
    for (let at = 0; at + leastQuote <= rest.length; at++) {
      if (text.includes(rest.slice(at, at + leastQuote))) return true
    }
    return false
  }
}

const digitsOf = (text: string) => text.replaceAll(/\D/g, '')

/** An error for the log. The code of a provider can throw any value, because it may belong to a plugin. */
export function faultWithoutQuotes(thrown: unknown, message: Quotable): Error {
  try {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    const fault = new Error(withoutQuotes(error.message, message))
    const frames = String(error.stack)
      .split('\n')
      .filter((line) => line.startsWith('    at '))
    fault.name = String(error.name)
    fault.stack = [`${fault.name}: ${fault.message}`, ...frames].join('\n')
    return fault
  } catch {
    return new Error('the provider threw a value that cannot be read')
  }
}
