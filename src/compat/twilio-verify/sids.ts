/** A SID is two letters and the 32 hex digits of a notice id, which begin with the time of the notice. */

export const sidOf = (prefix: 'VE' | 'VL', noticeId: string) =>
  prefix + noticeId.replaceAll('-', '')

/** Undefined for a text that is no SID of this kind. */
export function noticeIdOf(prefix: 'VE', sid: string): string | undefined {
  const digits = /^[A-Z]{2}([0-9a-f]{32})$/i.exec(sid)?.[1]?.toLowerCase()
  if (!digits || !sid.startsWith(prefix)) return undefined
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** RFC 9562: the first 48 bits of the id are milliseconds since 1970. */
export const timeOf = (noticeId: string) =>
  new Date(Number.parseInt(noticeId.replaceAll('-', '').slice(0, 12), 16)).toISOString()
