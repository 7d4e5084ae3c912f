import { isIP } from 'node:net'

/** Longer than any IPv6 address in brackets with a zone and a port. */
const maxLength = 100

/**
 * The address that limits count as one caller. An IPv6 customer has a whole /64. IPv4 inside IPv6 becomes IPv4. All
 * spellings of one address become one. Undefined if the text is not an address: some proxies write words.
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
  const [high, low] = groups.slice(6).map((group) => Number.parseInt(group, 16)) as [number, number]
  return groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff'
    ? [high >> 8, high & 255, low >> 8, low & 255].join('.')
    : `${groups.slice(0, 4).join(':')}::/64`
}
