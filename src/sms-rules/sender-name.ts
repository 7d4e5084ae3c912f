/** The rules for a name as the sender: its form, and names that are too general. */
import { notInGsm7 } from '../base/sms-length.ts'
import type { Consequence, SenderFormFact, SenderWordsFact } from './facts.ts'
import { squeezed } from './text-parts.ts'

const alphabets = {
  ascii: ['plain letters, digits and signs', /^[\x20-\x7e]*$/],
  gsm: ['characters of the GSM alphabet', undefined],
  letters: ['letters from A to Z', /^[A-Za-z]*$/],
  lettersAndDigits: ['letters from A to Z and digits', /^[A-Za-z0-9]*$/],
} as const

/** In every network. */
const maxNameLength = 11

export function formBroken(fact: SenderFormFact, sender: string) {
  const { minLength = 1, maxLength, characters, pattern, needsLetter } = fact
  const length = [...sender].length
  const wants: string[] = []
  if (length < minLength) wants.push(`at least ${minLength} characters`)
  if (maxLength !== undefined && length > maxLength) wants.push(`at most ${maxLength} characters`)
  if (characters) {
    const [words, alphabet] = alphabets[characters]
    const isWritten = alphabet ? alphabet.test(sender) : notInGsm7(sender).length === 0
    if (!isWritten) wants.push(`only ${words}`)
  }
  if (needsLetter && !/\p{L}/u.test(sender)) wants.push('a letter')
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(sender)) {
    wants.push(`the form ${pattern}`)
  }
  if (wants.length === 0) return undefined
  const why = `a name as the sender must have ${wants.join(', ')}, and "${sender}" has not`
  const is = length > maxNameLength ? 'refused' : (fact.is ?? 'refused')
  return {
    is,
    rule: 'senderForm',
    why: is === 'risky' ? `${why}, so ${happens(is)}` : why,
  } as const
}

export function wordsBroken({ words, is, exact = true }: SenderWordsFact, sender: string) {
  const name = squeezed(sender)
  const word = words.find((each) =>
    exact ? squeezed(each) === name : name.includes(squeezed(each)),
  )
  if (word === undefined) return undefined
  const whole = exact ? `"${sender}" is too general a sender` : `no sender may contain "${word}"`
  return { is, rule: 'senderWords', why: `${whole}, so ${happens(is)}` }
}

export function happens(is: Consequence, shownAs = 'another sender'): string {
  if (is === 'refused') return 'the message is blocked'
  return is === 'replaced' ? `people see ${shownAs} in its place` : 'some carriers block it'
}
