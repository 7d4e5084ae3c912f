import type { IncomingMessage } from 'node:http'

/**
 * From this very machine, not passed on by a proxy that runs on it, and not by a page whose own name
 * was made to lead here (DNS rebinding): a browser sends the name it was given as Host.
 */
export function isLocalCaller({ socket, headers }: IncomingMessage): boolean {
  const address = socket.remoteAddress ?? ''
  const isLoopback = address === '::1' || /^(::ffff:)?127\./.test(address)
  const isForwarded = forwardingHeaders.some((name) => headers[name] !== undefined)
  return isLoopback && !isForwarded && loopbackHost.test(headers.host ?? '')
}

const forwardingHeaders = ['forwarded', 'via', 'x-real-ip', 'x-forwarded-for']

const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i

export const notLocal = {
  en: 'The sandbox answers only callers on its own machine, who name it localhost.',
  zh: '沙箱只回应本机以 localhost 访问的调用方。',
}
