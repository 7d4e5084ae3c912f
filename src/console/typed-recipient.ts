/**
 * Cleans a recipient that a person pasted from a mail, a chat, a spreadsheet or a contact. Only the console does so: the
 * API stays strict (src/recipient), because what a program sends is counted and paid for.
 */

/** Invisible characters (directions, joiners, breaks) that come with text from right-to-left texts and web pages. */
const unseen = /[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g
const dashes = /[\u2010-\u2015\u2212]/g

/** Makes full-width characters plain (NFKC) and removes wrappings. Of a number, only digits, plus and dashes stay. */
export function typedRecipient(text: string): string {
  const plain = text.normalize('NFKC').replace(unseen, '').replace(dashes, '-').trim()
  const bare = /^<([^<>]*)>$/.exec(plain)?.[1] ?? plain
  const named = bare.replace(/^(tel|sms|mailto):/i, '').trim()
  return /^[[(]?[+\d][\d\s()[\].-]*$/.test(named) ? named.replace(/[\s()[\].]/g, '') : named
}
