/** Bytes of a header line (RFC 5322, 2.1.1). An address has no place where it could be folded. */
const longestLine = 998

/** The headers of RFC 2369 and, for an address that takes one click, RFC 8058; `tooLong`: they fit no line. */
export function unsubscribeHeaders(link: string | undefined) {
  if (link === undefined) return {}
  const name = 'List-Unsubscribe'
  const value = `<${link}>`
  if (`${name}: ${value}`.length > longestLine) return 'tooLong'
  return {
    [name]: { value, prepared: true },
    ...(link.startsWith('https:') ? { [`${name}-Post`]: `${name}=One-Click` } : {}),
  }
}
