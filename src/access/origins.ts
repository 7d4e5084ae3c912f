/**
 * The origins a publishable key may be used from, spelled as browsers spell them in `Origin`: then whether a
 * page may use a key is one comparison of texts, and nothing is left to interpretation while a request waits.
 */

/** More is a list that nobody looks through any more; another key has room for as many again. */
const maxOrigins = 50
/** A name has at most 253 characters. */
const maxLength = 300

export type ParsedOrigin = { ok: true; origin: string } | { ok: false; message: string }

/** Upper case, an international name and the scheme's own port become what a browser makes of them. */
export function parseOrigin(text: string): ParsedOrigin {
  const refused = (message: string): ParsedOrigin => ({ ok: false, message })
  if (text === 'null') {
    return refused('is what every sandboxed page and local file sends, so it names nobody')
  }
  if (text.length > maxLength) return refused(`is longer than ${maxLength} characters`)
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase()
  if (!scheme) return refused('has no scheme; write https:// in front')
  if (scheme !== 'https' && scheme !== 'http')
    return refused('has a scheme other than https or http')
  const rest = text.slice(scheme.length + '://'.length)
  if (rest.includes('@')) return refused('has a user or password in it')
  if (/[/?#\\]/.test(rest)) {
    return refused('has something behind the host; a browser names scheme, host and port only')
  }
  if (rest.includes('*')) return refused('has a wildcard; list every origin')
  // The parser would leave them out without a word.
  if (/[\s\p{Cc}]/u.test(rest)) return refused('has a space in it')
  const url = URL.parse(text)
  if (!url || !/^([a-z0-9._-]+|\[[0-9a-f:]+\])$/.test(url.hostname)) {
    return refused('has no host that a browser would accept')
  }
  return { ok: true, origin: url.origin }
}

export type ParsedOrigins =
  | {
      ok: true
      /** Each once. */
      origins: string[]
      /** Those that were written in another way, and what they became. */
      respelled: { from: string; to: string }[]
    }
  | { ok: false; problems: string[] }

/** A key's whole list; every problem at once. */
export function parseOrigins(texts: readonly string[]): ParsedOrigins {
  if (texts.length > maxOrigins) {
    return {
      ok: false,
      problems: [`A key has at most ${maxOrigins} origins, not ${texts.length}.`],
    }
  }
  const problems: string[] = []
  const respelled: { from: string; to: string }[] = []
  const origins = new Set<string>()
  for (const text of texts) {
    const parsed = parseOrigin(text)
    if (!parsed.ok)
      problems.push(`The origin ${JSON.stringify(text.slice(0, 100))} ${parsed.message}.`)
    else {
      origins.add(parsed.origin)
      if (parsed.origin !== text) respelled.push({ from: text, to: parsed.origin })
    }
  }
  return problems.length > 0
    ? { ok: false, problems }
    : { ok: true, origins: [...origins], respelled }
}
