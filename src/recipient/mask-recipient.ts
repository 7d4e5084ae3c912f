/**
 * The masked form in answers: the owner of a number or address recognises it, and others can't read it. The statement
 * that writes events masks in the same way (src/notice/outbox.ts).
 */
export function maskRecipient(channel: string, to: string): string {
  if (channel === 'email') {
    const at = to.lastIndexOf('@')
    return `${to.slice(0, 1)}***${to.slice(at)}`
  }
  // At least four digits are hidden, even in a short number.
  const head = Math.min(5, Math.max(2, to.length - 8))
  const tail = Math.min(4, Math.max(0, to.length - head - 4))
  return `${to.slice(0, head)}****${to.slice(to.length - tail)}`
}
