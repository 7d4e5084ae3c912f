/**
 * The origins where a publishable key may be used, spelled as browsers write them in `Origin`. So a request needs only
 * a comparison of texts.
 */

/** A longer list is hard to read. An app can have several keys. */
const maxOrigins = 50
/** A host name has at most 253 characters. */
const maxLength = 300

export type ParsedOrigin = { ok: true; origin: string } | { ok: false; message: string }

/** Upper case, international names and default ports become the form that browsers send. */
export function parseOrigin(text: string): ParsedOrigin {
  const refused = (message: string): ParsedOrigin => ({ ok: false, message })
  if (text === 'null') {
    return refused('is sent by every sandboxed page and local file, so it identifies no page')
  }
  if (text.length > maxLength) return refused(`is longer than ${maxLength} characters`)
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase()
  if (!scheme) return refused('has no scheme; write https:// in front')
  if (scheme !== 'https' && scheme !== 'http')
    return refused('has a scheme other than https or http')
  const rest = text.slice(scheme.length + '://'.length)
  if (rest.includes('@')) return refused('has a user or password in it')
  if (/[/?#\\]/.test(rest)) {
    return refused('has more than scheme, host and port')
  }
  if (rest.includes('*')) return refused('has a wildcard; list every origin')
  // The URL parser would drop these characters silently.
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
      /** Without duplicates. */
      origins: string[]
      /** Origins that were spelled in another way, with the spelling of browsers. */
      respelled: { from: string; to: string }[]
    }
  | { ok: false; problems: string[] }

/** Parses the whole list of a key, and reports every problem. */
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
