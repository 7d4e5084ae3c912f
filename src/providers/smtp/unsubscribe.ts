/** Bytes of a header line (RFC 5322, 2.1.1). An address can't be folded. */
const longestLine = 998

/** The headers of RFC 2369 and, for one-click addresses, of RFC 8058. `tooLong`: a header does not fit into a line. */
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
