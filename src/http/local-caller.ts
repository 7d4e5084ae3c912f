import type { Request } from 'express'

/**
 * True for a caller on this machine. Excluded are requests through a local proxy, and pages whose name was made to
 * point here (DNS rebinding): browsers send that name as Host.
 */
export function isLocalCaller({ socket, headers, app }: Request): boolean {
  // Behind a proxy every caller has the proxy's address, and some proxies don't name the real one.
  if (app.get('trust proxy')) return false
  const address = socket.remoteAddress ?? ''
  const isLoopback = address === '::1' || /^(::ffff:)?127\./.test(address)
  const isForwarded = Object.keys(headers).some(isForwarding)
  return isLoopback && !isForwarded && loopbackHost.test(headers.host ?? '')
}

/** Headers of the standard and of usual proxies: `X-Forwarded-Host`, `X-Real-IP`, `CF-Connecting-IP`. */
const isForwarding = (name: string) =>
  ['forwarded', 'via'].includes(name) ||
  name.startsWith('x-forwarded-') ||
  name.startsWith('x-envoy-') ||
  name.endsWith('-ip')

const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i
