/**
 * What answers show: enough to recognise one's own, too little to learn another's. Events are masked the same
 * way by the statement that writes them (src/notice/outbox.ts).
 */
export function maskRecipient(channel: string, to: string): string {
  if (channel === 'email') {
    const at = to.lastIndexOf('@')
    return `${to.slice(0, 1)}***${to.slice(at)}`
  }
  // Four digits at least are hidden, however short the number is.
  const head = Math.min(5, Math.max(2, to.length - 8))
  const tail = Math.min(4, Math.max(0, to.length - head - 4))
  return `${to.slice(0, head)}****${to.slice(to.length - tail)}`
}
