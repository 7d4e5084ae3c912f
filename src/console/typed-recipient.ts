/**
 * What people paste into the search: out of a mail, a chat, a spreadsheet, a contact. It is cleaned here and not where
 * recipients are read (src/recipient): programs get no such leave, because what they send is counted and paid for.
 */

/** Marks that show nothing (directions, joiners, breaks) and come along from right-to-left texts and web pages. */
const unseen = /[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g
const dashes = /[\u2010-\u2015\u2212]/g

/** Full-width digits and letters become plain ones (NFKC), wrappings go, and of a number all but its digits, plus and dashes. */
export function typedRecipient(text: string): string {
  const plain = text.normalize('NFKC').replace(unseen, '').replace(dashes, '-').trim()
  const bare = /^<([^<>]*)>$/.exec(plain)?.[1] ?? plain
  const named = bare.replace(/^(tel|sms|mailto):/i, '').trim()
  return /^[[(]?[+\d][\d\s()[\].-]*$/.test(named) ? named.replace(/[\s()[\].]/g, '') : named
}
