/** The address in DATABASE_URL, as the driver reads it: one server, or a socket (`postgresql://user:password@/db?host=/run/…`). */

/** The driver takes these from the address before Postern's own, and would wait by them. */
const ownLimits = ['statement_timeout', 'query_timeout', 'idle_in_transaction_session_timeout']

/** Undefined if the driver can't read it. */
export function readPostgresAddress(
  url: string,
): { connectionString: string; schema: string | undefined } | undefined {
  // `URL` needs a host behind a user.
  const parsed = URL.parse(url) ?? URL.parse(url.replace('@/', '@socket/'))
  if (!parsed || parsed.hostname.includes(',')) return undefined
  const [address = '', query = ''] = url.split(/\?(.*)/s)
  const others = query.split('&').filter((pair) => !ownLimits.includes(pair.split('=', 1)[0] ?? ''))
  return {
    connectionString: query ? `${address}?${others.join('&')}` : url,
    schema: parsed.searchParams.get('schema') || undefined,
  }
}
