/** What lua/acquire-N.lua is told of the parts of a policy, and what values in Redis are made of. */
import { LimiterUnavailable } from '../errors.ts'
import type { Uses } from '../memory/kinds.ts'
import type { Part } from '../policy/compile.ts'
import type { Check } from '../store.ts'

/** Bytes of a value: before its first number, of a time, of a number of uses. */
const headBytes = 1
const timeBytes = 6
const countBytes = 4
const useBytes = timeBytes + countBytes

/** Where the first use stands in a value, as Lua counts. */
export const firstByte = ({ rule }: Part) => 1 + headBytes + (rule.lock ? useBytes : 0)

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
      first: firstByte(part),
      ...rule.lock,
      ...part.calendar?.latest(),
    }
  })
  return JSON.stringify(plan)
}

/** What a value says; throws `LimiterUnavailable` if it is not one of the limiter's. */
export function usesOf(part: Part, value: unknown): Uses {
  if (!Buffer.isBuffer(value) || value.length === 0) return part.empty
  if (value[0] !== 2 || value.length % useBytes !== headBytes + countBytes) {
    throw new LimiterUnavailable(notOurs)
  }
  const uses: Uses = []
  let at = headBytes
  if (part.rule.lock) {
    uses.push(value.readUIntBE(at, timeBytes), value.readUInt32BE(at + timeBytes))
    at += useBytes
  }
  const base = value.readUInt32BE(at)
  const countAt = (place: number) => (value.readUInt32BE(place) - base) >>> 0
  for (; at + useBytes < value.length; at += useBytes) {
    uses.push(countAt(at), value.readUIntBE(at + countBytes, timeBytes))
  }
  uses.push(countAt(at))
  return uses
}

export const notNumbers = 'the connection gives numbers as texts (stringNumbers)'
export const notOurs = 'a value in Redis is not one of the limiter’s; reset() repairs it'
