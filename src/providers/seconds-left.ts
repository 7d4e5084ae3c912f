import type { Message } from './provider.ts'

/**
 * How long a far end may try to deliver the message: whole seconds, at least one and at most `most`. Undefined when the
 * message has no end.
 */
export function secondsLeft({ endsAtMs }: Message, most: number): number | undefined {
  if (endsAtMs === undefined) return undefined
  const left = Math.floor((endsAtMs - performance.now()) / 1_000)
  return Math.min(Math.max(left, 1), most)
}
