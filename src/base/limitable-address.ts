import { isIP } from 'node:net'

/** An IPv6 address in brackets with a zone and a port has less. */
const maxLength = 100

/**
 * What a limit counts as one caller. An IPv6 customer holds a whole /64; IPv4 inside IPv6 is IPv4; and
 * every spelling of one address is one. Undefined for what is no address: some proxies write words, or
 * the port beside the address.
 */
export function limitableAddress(text: string): string | undefined {
  if (text.length > maxLength) return undefined
  if (isIP(text) === 4) return text
  const bare =
    // How a server on both protocols writes every IPv4 caller.
    /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1] ??
    /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/.exec(text)?.[1] ??
    /^\[([0-9a-f:.]+)\](?::\d{1,5})?$/i.exec(text)?.[1] ??
    (text.split('%', 1)[0] as string)
  if (isIP(bare) === 4) return bare
  if (isIP(bare) !== 6) return undefined
  // The URL parser writes an IPv6 address in its one short form, without dots.
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
