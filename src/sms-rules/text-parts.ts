/** Parts of a text and kinds of a sender, as filters of carriers see them. */
import { notInGsm7 } from '../base/sms-length.ts'
import type { SenderKind, TextPart } from './facts.ts'

const domain = String.raw`[a-z0-9][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){0,5}`
const endings =
  'com|net|org|info|biz|io|app|dev|co|me|ly|gl|gg|to|link|shop|store|site|online|xyz|top|example|test'
const shorteners =
  'bit\\.ly|tinyurl\\.com|goo\\.gl|t\\.co|ow\\.ly|is\\.gd|buff\\.ly|rebrand\\.ly|cutt\\.ly|t\\.ly|rb\\.gy|' +
  'shorturl\\.at|tiny\\.cc|t\\.cn|url\\.cn|dwz\\.cn|s\\.id|lnkd\\.in'

/** Not the domain of a mail address, and not the line of WebOTP. */
const before = String.raw`(?<![\w@.-])`

const patterns: Readonly<Record<Exclude<TextPart, 'nonGsm' | 'word'>, RegExp>> = {
  link: new RegExp(
    `https?://\\S|${before}www\\.[\\w-]|${before}${domain}\\.(?:${endings})\\b(?!@)|${before}${domain}\\.[a-z]{2}/\\S`,
    'i',
  ),
  shortLink: new RegExp(`(?<![\\w@.-])(?:${shorteners})\\b`, 'i'),
  phoneNumber: /\+\d[\d ().-]{6,18}\d|(?<![\w.-])0[\d ()-]{7,18}\d|\b\d{3}[ -]\d{3}[ -]\d{4}\b/,
  emailAddress: new RegExp(`[\\w.+-]{1,64}@${domain}\\.[a-z]{2,}`, 'i'),
  webOtp: /\n{1,9}@[a-z0-9.-]{1,253} #\S{1,64}(?: @[a-z0-9.-]{1,253})?$/i,
  emoji: /\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F/u,
}

/** Whether the text has such a part, or one of the words. */
export function hasPart(text: string, part: TextPart, words: readonly string[] = []): boolean {
  if (part === 'nonGsm') return notInGsm7(text).length > 0
  if (part === 'word') return words.some((word) => wholeWord(word).test(text))
  return patterns[part].test(text.trimEnd())
}

/** A text without its last line for WebOTP, which filters of some carriers take for a link. */
export const withoutWebOtp = (text: string): string => text.replace(patterns.webOtp, '')

/** The text as a part of a regular expression. */
const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')

/** Chinese and Thai have no spaces between words. */
function wholeWord(word: string): RegExp {
  const isSpaced = /^[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\d\s'-]+$/u.test(word)
  return new RegExp(
    isSpaced ? `(?<![\\p{L}\\p{N}])${escaped(word)}(?![\\p{L}\\p{N}])` : escaped(word),
    'iu',
  )
}

const tollFree = /^\+?(1(800|888|877|866|855|844|833)\d{7}|44(800|808)\d{6,7}|800\d{8})$/

const withoutSigns = (sender: string) => sender.replace(/[\s().-]/g, '')

/** Whether a list has this sender: a number however it is written, a name as it is. */
export function hasSender(list: readonly string[], sender: string): boolean {
  const key = (each: string) =>
    kindOfSender(each) === 'alphanumeric' ? each : withoutSigns(each).replace(/^\+/, '')
  return list.some((each) => key(each) === key(sender))
}

export function kindOfSender(sender: string): SenderKind {
  const number = withoutSigns(sender)
  if (!/^\+?\d+$/.test(number)) return 'alphanumeric'
  if (tollFree.test(number)) return 'tollFree'
  return number.length <= 6 && !number.startsWith('+') ? 'short' : 'long'
}

/** For names: letter case and spaces do not count. */
export const squeezed = (name: string) => name.replace(/\s/g, '').toLowerCase()
