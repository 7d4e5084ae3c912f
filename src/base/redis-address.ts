/**
 * The address in REDIS_URL: `redis://`, `redis+cluster://h1:p1,h2:p2` or `redis+sentinel://h1:p1,h2:p2/name`, each also
 * with `rediss`. ioredis reads addresses of one server only.
 */
import type { ConnectionOptions } from 'node:tls'

interface Host {
  host: string
  port: number
}

export type RedisAddress =
  | { kind: 'server' }
  | {
      kind: 'cluster' | 'sentinel'
      hosts: Host[]
      credentials: { username?: string; password?: string }
      /** TLS to every server, also to sentinels; undefined without. */
      tls: ConnectionOptions | undefined
      /** The name of the master that sentinels know. */
      name: string
      sentinelPassword: string | undefined
    }

/** Its groups: TLS, kind, user, password, hosts, name, query. */
const form =
  /^redis(s?)\+(cluster|sentinel):\/\/(?:([^:@/?]*)(?::([^@/?]*))?@)?([^@/?]*)(?:\/([^?]*))?(?:\?(.*))?$/

const defaultPorts = { cluster: 6379, sentinel: 26379 }

export function readRedisAddress(url: string): RedisAddress {
  const parts = form.exec(url)
  if (!parts) return { kind: 'server' }
  const [, isTls, kindName, user, password, hosts = '', name = '', query = ''] = parts
  const kind = kindName as 'cluster' | 'sentinel'
  return {
    kind,
    hosts: hosts.split(',').map((text) => readHost(text, defaultPorts[kind])),
    credentials: {
      ...(user ? { username: decodeURIComponent(user) } : {}),
      ...(password ? { password: decodeURIComponent(password) } : {}),
    },
    tls: isTls ? {} : undefined,
    name: decodeURIComponent(name),
    sentinelPassword: readQuery(query, 'sentinelPassword'),
  }
}

const encode = 'is not a URL; percent-encode # / ? @ and % in its password'
const host = /^(?:\[[0-9a-f:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/i

/** Why an address can't be read, or would be read another way than it was meant; undefined for a right one. */
export function findRedisMistake(url: string): string | undefined {
  const [, , kind, user = '', password = '', hosts = '', name = '', query = ''] =
    form.exec(url) ?? []
  if (!kind) {
    const parsed = url.includes('+') && /^rediss?\+/.test(url) ? null : URL.parse(url)
    if (!parsed || !isEncoded(parsed.username + parsed.password)) return encode
    return /^\/?\d*$/.test(parsed.pathname)
      ? undefined
      : 'the database after the / must be a number'
  }
  if (![user, password, name, query].every(isEncoded)) return encode
  const wrong = hosts
    .split(',')
    .find((text) => !(Number(host.exec(text)?.[1] ?? 1) <= 65_535 && host.test(text)))
  if (wrong !== undefined) {
    return `"${wrong}" must be host:port, without spaces, and an IPv6 host in brackets`
  }
  if (kind === 'cluster' ? name !== '' : name.includes('/')) {
    return 'has no database; clusters have one, and behind Sentinels Postern uses the first'
  }
  const names = query.split('&').map((pair) => pair.split('=', 1)[0] ?? '')
  const unread = names.find((one) => one !== '' && one !== 'sentinelPassword')
  return unread === undefined ? undefined : `?${unread} is not read, only ?sentinelPassword`
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** An IPv6 address is in brackets. */
function readHost(text: string, defaultPort: number): Host {
  const [, bracketed, plain = '', port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? []
  return { host: bracketed ?? plain, port: port ? Number(port) : defaultPort }
}

/** A plus sign is a plus sign, as elsewhere in the address. */
function readQuery(query: string, name: string): string | undefined {
  const pair = query.split('&').find((text) => text.startsWith(`${name}=`))
  return pair && decodeURIComponent(pair.slice(name.length + 1))
}
