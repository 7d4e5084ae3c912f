import type { Message } from '../providers/provider.ts'

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
 * Hides the recipient, the variables and the text of a message in what a provider wrote. Its error may quote the request,
 * and it goes to rows, logs and operators (I14). If a quote can't be cut out, the whole text is replaced.
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

/** An error for the log. The code of a provider can throw any value, because it may be a plugin's. */
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
    return new Error('the provider threw a value that can not be read')
  }
}
