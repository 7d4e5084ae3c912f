import type { Message } from './provider.ts'

/** The rest of the message's life in whole seconds, from 1 to `most`. Undefined if the message has no end. */
export function secondsLeft({ endsAtMs }: Message, most: number): number | undefined {
  if (endsAtMs === undefined) return undefined
  const left = Math.floor((endsAtMs - performance.now()) / 1_000)
  return Math.min(Math.max(left, 1), most)
}
