/** Facts in plain English. */
import type { CountryRules, Fact } from './facts.ts'

export type About<Kind extends Fact['about']> = Extract<Fact, { about: Kind }>

const kinds = {
  alphanumeric: 'name',
  long: 'phone number',
  short: 'short code',
  tollFree: 'toll-free number',
}
const parts = {
  ...{ link: 'links', shortLink: 'short links', phoneNumber: 'phone numbers', emoji: 'emoji' },
  ...{ emailAddress: 'mail addresses', webOtp: 'WebOTP', nonGsm: 'other alphabets' },
}

export const onlyRegistered = (then: string | undefined) => `only registered, otherwise ${then}`

export function senderWords({ is, unregistered, shownAs }: About<'sender'>): string {
  const shown = shownAs === undefined ? '' : ` by ${shownAs}`
  return `${is === 'registered' ? onlyRegistered(unregistered) : is}${shown}`
}

/** A fact as an English sentence. */
export function factWords(fact: Fact): string {
  switch (fact.about) {
    case 'sender':
      return `A ${kinds[fact.kind]} as the sender: ${senderWords(fact)}.`
    case 'senderForm': {
      const { minLength, maxLength, characters, pattern, needsLetter } = fact
      const form = [
        minLength && `at least ${minLength} characters`,
        maxLength && `at most ${maxLength} characters`,
        characters &&
          `only ${characters === 'lettersAndDigits' ? 'letters and digits' : characters}`,
        needsLetter && 'at least one letter',
        pattern && `the form ${pattern}`,
      ]
      return `A name has ${form.filter(Boolean).join(', ')}.`
    }
    case 'senderWords':
      return `Names that ${fact.exact === false ? 'contain' : 'are'} ${fact.words.slice(0, 12).join(', ')}${fact.words.length > 12 ? ` and ${fact.words.length - 12} others` : ''}: ${fact.is}.`
    case 'text':
      return `Texts with ${fact.has === 'word' ? `words such as ${fact.words?.join(', ')}` : parts[fact.has]}: ${fact.is === 'registered' ? onlyRegistered(fact.unregistered ?? 'refused') : fact.is}.`
    case 'textForm':
      return `Texts without ${fact.needs === 'sign' ? 'a signature in 【】' : 'the name of the business'}: ${fact.is}.`
    case 'template':
      return fact.is === 'works'
        ? 'Texts need no registration.'
        : `Texts: ${onlyRegistered(fact.unregistered)}${fact.tags ? `; each variable has one of the types ${fact.tags.join(', ')}` : ''}.`
    case 'register': {
      const more = [
        fact.takes && `takes ${fact.takes}`,
        fact.costs,
        fact.local && 'local businesses only',
      ]
      return `Register of a ${fact.of}: ${[fact.name, ...more].filter(Boolean).join('; ')}.`
    }
    case 'price':
      return `Price: ${fact.class}.`
    case 'note':
      return fact.text
  }
}

function isRejecting(fact: Fact): boolean {
  if (fact.about === 'senderForm') return true
  if (!('is' in fact)) return false
  const then = 'unregistered' in fact ? (fact.unregistered ?? fact.is) : fact.is
  return then !== 'works' && then !== 'replaced'
}

/** The facts of a country by which a carrier may reject a message, as sentences with their sources. */
export function rejectingRules({ facts }: CountryRules): { words: string; source: string }[] {
  return facts.flatMap((fact) =>
    isRejecting(fact) ? [{ words: factWords(fact), source: fact.source }] : [],
  )
}
