import { isIP } from 'node:net'

/** Longer than any IPv6 address in brackets with a zone and a port. */
const maxLength = 100

/**
 * The address that limits count as one caller. An IPv6 customer has a whole /64. IPv4 inside IPv6 becomes IPv4: otherwise
 * all callers behind a translator share one /64. All spellings of one address become one. Undefined if the text is not
 * an address: some proxies write words.
 */
export function limitableAddress(text: string): string | undefined {
  if (text.length > maxLength) return undefined
  if (isIP(text) === 4) return text
  const bare =
    // A server on both protocols writes IPv4 callers in this form.
    /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1] ??
    /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(text)?.[1] ??
    /^\[([0-9a-f:.]+)\](?::\d{1,5})?$/i.exec(text)?.[1] ??
    (text.split('%', 1)[0] as string)
  if (isIP(bare) === 4) return bare
  if (isIP(bare) !== 6) return undefined
  // The URL parser returns the one short form of an IPv6 address, without dots.
  const short = new URL(`http://[${bare}]`).hostname.slice(1, -1)
  const [head = '', tail] = short.split('::')
  const groups = head ? head.split(':') : []
  const rest = tail ? tail.split(':') : []
  if (tail !== undefined) groups.push(...Array(8 - groups.length - rest.length).fill('0'), ...rest)
  return embedded(groups) ?? `${groups.slice(0, 4).join(':')}::/64`
}

/** The wider network of an address from `limitableAddress`: the /48 of an IPv6 address. An IPv4 address is unchanged. */
export const wideAddress = (counted: string): string =>
  counted.replace(/^((?:[0-9a-f]+:){3})[0-9a-f]+::\/64$/, '$1:/48')

/** The IPv4 address in an IPv6 address. */
function embedded(groups: readonly string[]): string | undefined {
  const start = groups.slice(0, 6).join(':')
  const isAtEnd =
    start === '0:0:0:0:0:ffff' ||
    // Translators: RFC 6052, and for private use RFC 8215.
    start === '64:ff9b:0:0:0:0' ||
    /^64:ff9b:1:[0-9a-f]+:0:0$/.test(start)
  if (isAtEnd) return dotted(groups.slice(6))
  // 6to4: a site has the /48 of its IPv4 address.
  if (groups[0] === '2002') return dotted(groups.slice(1, 3))
  // Teredo: the caller's IPv4 address has its bits inverted (RFC 4380).
  if (start.startsWith('2001:0:')) return dotted(groups.slice(6), 0xffff)
  return undefined
}

const dotted = (groups: readonly string[], inverted = 0) =>
  groups
    .map((group) => Number.parseInt(group, 16) ^ inverted)
    .flatMap((number) => [number >> 8, number & 255])
    .join('.')
