import { rulesOf } from './data.ts'
import type {
  Consequence,
  CountryRules,
  Fact,
  RegisterFact,
  SenderFact,
  TemplateFact,
  TextFact,
  TextFormFact,
  TextPart,
} from './facts.ts'
import { differenceOf, untaggedIn } from './registered-text.ts'
import { formBroken, happens, wordsBroken } from './sender-name.ts'
import { hasPart, kindOfSender, squeezed } from './text-parts.ts'

export interface Sms {
  /** ISO 3166-1, two capitals. */
  readonly country: string
  /** The sender: a name or a number. */
  readonly sender?: string | undefined
  /** The text. A value that is not known yet may be written as {{name}}. */
  readonly text?: string | undefined
  /** The text as it was registered, with the variables as the register writes them. */
  readonly template?: string | undefined
  /** Registrations in that country. */
  readonly registered?:
    | {
        readonly sender?: boolean | undefined
        readonly template?: boolean | undefined
        readonly link?: boolean | undefined
      }
    | undefined
}

export interface Finding {
  readonly about: Fact['about']
  readonly is: Consequence
  /** `error`: the message is blocked. */
  readonly severity: 'error' | 'warning'
  /** A stable name, such as text.link. */
  readonly rule: string
  /** A sentence. */
  readonly message: string
  /** The registration that would mend it, if one would: a member of `registered`. */
  readonly wants?: 'sender' | 'template' | 'link'
  /** The line of the text, counted from 1, for a part that the text must not have. */
  readonly line?: number
  /** The address of the fact's source. */
  readonly source: string
  /** The day of the last look into the source. */
  readonly read: string
}

/** The rules of the country that this message breaks. A country without rules has no findings. */
export function checkSms(sms: Sms): Finding[] {
  const rules = rulesOf(sms.country)
  if (!rules) return []
  return rules.facts.flatMap((fact) => {
    const broken = brokenBy(fact, sms, rules)
    if (!broken) return []
    const { why, ...found } = broken
    const { about, source, read } = fact
    const severity = broken.is === 'refused' ? 'error' : 'warning'
    return [{ about, severity, message: `${rules.name}: ${why}.`, ...found, source, read }]
  })
}

interface Broken extends Pick<Finding, 'is' | 'rule' | 'wants' | 'line'> {
  /** A sentence without its full stop. */
  readonly why: string
}

function brokenBy(fact: Fact, sms: Sms, rules: CountryRules): Broken | undefined {
  const { sender, text } = sms
  const isName = sender !== undefined && kindOfSender(sender) === 'alphanumeric'
  switch (fact.about) {
    case 'sender':
      return sender === undefined ? undefined : senderBroken(fact, sender, sms, rules)
    case 'senderForm':
      return isName ? formBroken(fact, sender) : undefined
    case 'senderWords':
      return isName ? wordsBroken(fact, sender) : undefined
    case 'text':
      return text === undefined ? undefined : textBroken(fact, text, sms)
    case 'textForm':
      return text === undefined
        ? undefined
        : textFormBroken(fact, text, isName ? sender : undefined)
    case 'template':
      return templateBroken(fact, sms, rules)
    default:
      return undefined
  }
}

const kindWords = {
  alphanumeric: 'a name',
  long: 'a phone number',
  short: 'a short code',
  tollFree: 'a toll-free number',
} as const

function senderBroken(
  fact: SenderFact,
  sender: string,
  { registered }: Sms,
  rules: CountryRules,
): Broken | undefined {
  if (kindOfSender(sender) !== fact.kind || fact.is === 'works') return undefined
  const kind = kindWords[fact.kind]
  const rule = `sender.${fact.kind}`
  if (fact.is !== 'registered') {
    const why = `with ${kind} as the sender, ${happens(fact.is, fact.shownAs)}`
    return { is: fact.is, rule, why }
  }
  const is = fact.unregistered
  if (registered?.sender || is === undefined || is === 'works') return undefined
  const why = `${kind} must be registered before it is a sender. "${sender}" is not, so ${happens(is, fact.shownAs)}`
  return { is, rule, why: why + whereToFile(rules, ['sender', 'brand']), wants: 'sender' }
}

function whereToFile({ facts }: CountryRules, of: readonly RegisterFact['of'][]): string {
  const registers = facts.flatMap((fact) =>
    fact.about === 'register' && of.includes(fact.of) ? [`${fact.name} (${fact.url})`] : [],
  )
  return registers.length === 0 ? '' : `. Where to file it: ${registers.join(', or ')}`
}

const partWords: Readonly<Record<TextPart, string>> = {
  link: 'a link',
  shortLink: 'a shortened link',
  phoneNumber: 'a phone number',
  emailAddress: 'a mail address',
  webOtp: 'a WebOTP line',
  emoji: 'an emoji',
  nonGsm: 'a character outside the GSM alphabet',
  word: 'such a word',
}

function textBroken(
  { has, words, is, unregistered = 'refused' }: TextFact,
  text: string,
  { registered }: Sms,
): Broken | undefined {
  if (is === 'registered' && registered?.link) return undefined
  if (has === 'link' && is !== 'risky' && !hasPart(text, 'link') && hasPart(text, 'webOtp')) {
    const why = 'a WebOTP line can look like a link to filters, so some carriers may block the text'
    return { is: 'risky', rule: 'text.webOtp', why, line: text.trimEnd().split('\n').length }
  }
  if (!hasPart(text, has, words)) return undefined
  const rule = `text.${has}`
  // A WebOTP line is only known by the line break before it.
  const line = 1 + text.split('\n').findIndex((each) => hasPart(`\n${each}`, has, words))
  if (is === 'registered') {
    const why = `${partWords[has]} in a text must be registered before, or ${happens(unregistered)}`
    return { is: unregistered, rule, why, wants: 'link', line }
  }
  const word = words?.find((each) => hasPart(text, 'word', [each]))
  const part = word === undefined ? partWords[has] : `the word "${word}"`
  return { is, rule, why: `the text has ${part}, so ${happens(is)}`, line }
}

function textFormBroken({ needs, is }: TextFormFact, text: string, name: string | undefined) {
  const rule = `textForm.${needs}`
  if (needs === 'sign') {
    const why = `a text must begin with a registered signature in 【】; without it, ${happens(is)}`
    return text.startsWith('【') ? undefined : { is, rule, why }
  }
  if (name === undefined || squeezed(text).includes(squeezed(name))) return undefined
  const why = `a text must name the business, and this one has no "${name}", so ${happens(is)}`
  return { is, rule, why }
}

function templateBroken(
  fact: TemplateFact,
  { text, template, registered }: Sms,
  rules: CountryRules,
): Broken | undefined {
  const { is: state, unregistered: is, tags } = fact
  if (state === 'works' || is === undefined || is === 'works') return undefined
  if (text === undefined && template === undefined) return undefined
  if (template === undefined) {
    const why = `each text must be registered before, and this one is not, so ${happens(is)}`
    const where = whereToFile(rules, ['template'])
    if (registered?.template) return undefined
    return { is, rule: 'template', why: why + where, wants: 'template' }
  }
  const untagged = tags && untaggedIn(template, tags)
  if (untagged) {
    const example = fact.variables?.replace('var', tags[0] ?? '')
    const why = `${untagged} of the registered text names no type; write one such as ${example}, or ${happens(is)}`
    return { is, rule: 'template.tags', why }
  }
  const difference = text === undefined ? undefined : differenceOf(text, template)
  if (difference === undefined) return undefined
  return { is, rule: 'template.text', why: `${difference}, so ${happens(is)}` }
}
