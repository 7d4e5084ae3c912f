/** What lua/acquire-N.lua is told of the parts of a policy, and what values in Redis are made of. */
import { LimiterUnavailable } from '../errors.ts'
import type { Uses } from '../memory/kinds.ts'
import type { Part } from '../policy/compile.ts'
import type { Check } from '../store.ts'

/** Bytes of a value before its first number, and of a use: its time and how many it stands for. */
const headBytes = 1
const timeBytes = 6
const useBytes = 10

/** Where the first use stands in a value, as Lua counts. */
export const firstByte = (part: Part) => headBytes + 1 + (part.first / 2) * useBytes

/** The parts as lua/acquire-N.lua takes them; who has solved a challenge passes the rules that ask for one. */
export function planOf({ parts, permits, isSolved }: Check): string {
  const plan = parts.map((part, place) => {
    const { rule, longestMs, granuleMs, trustMs } = part
    return {
      kind: rule.kind,
      mode: isSolved && rule.mode === 'challenge' ? 'observe' : rule.mode,
      rule: rule.name,
      permits: permits[place] ?? 1,
      windows: part.windows.map(({ limit, windowMs, index }) => ({ limit, ms: windowMs, index })),
      longestMs,
      granuleMs,
      trustMs,
      ...rule.lock,
      ...part.calendar?.latest(),
    }
  })
  return JSON.stringify(plan)
}

/** What a value says; throws `LimiterUnavailable` if it is not one of the limiter's. */
export function usesOf(part: Part, value: unknown): Uses {
  if (!Buffer.isBuffer(value) || value.length <= headBytes) return part.empty
  if (value[0] !== 1 || value.length % useBytes !== headBytes) throw new LimiterUnavailable(notOurs)
  const uses: number[] = []
  for (let at = headBytes; at < value.length; at += useBytes) {
    uses.push(value.readUIntBE(at, timeBytes), value.readUInt32BE(at + timeBytes))
  }
  return uses
}

export const notOurs = 'a value in Redis is not one of the limiter’s; reset() repairs it'
