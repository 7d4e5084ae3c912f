/** What lua/acquire-N.lua is told of the parts of a policy, and what values in Redis are made of. */
import { LimiterUnavailable } from '../errors.ts'
import type { Uses } from '../memory/kinds.ts'
import type { Part } from '../policy/compile.ts'
import type { Check } from '../store.ts'

/** Bytes of a time, and of a number of uses. */
const timeBytes = 6
const countBytes = 4
const useBytes = timeBytes + countBytes

/** Where the uses begin in a value, as Lua counts. */
export const firstByte = ({ rule }: Part) => 1 + (rule.lock ? useBytes : 0)

/** The parts as lua/acquire-N.lua takes them; who has solved a challenge passes the rules that ask for one. */
export function planOf({ asks, isSolved }: Check): string {
  const plan = asks.map(({ part, permits }) => {
    const { rule, longestMs, granuleMs, trustMs } = part
    return {
      kind: rule.kind,
      mode: isSolved && rule.mode === 'challenge' ? 'observe' : rule.mode,
      rule: rule.name,
      permits,
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
  if (value.length < firstByte(part) || value.length % useBytes !== countBytes) {
    throw new LimiterUnavailable(notOurs)
  }
  const uses: Uses = []
  let at = 0
  if (part.rule.lock) {
    uses.push(value.readUIntBE(at, timeBytes), value.readUInt32BE(at + timeBytes))
    at += useBytes
  }
  uses.push(0)
  const before = value.readUInt32BE(value.length - countBytes)
  for (; at + useBytes < value.length; at += useBytes) {
    const made = value.readUInt32BE(at + timeBytes)
    uses.push(value.readUIntBE(at, timeBytes), (made - before) >>> 0)
  }
  return uses
}

export const notNumbers = 'the connection gives numbers as texts (stringNumbers)'
export const notOurs = 'a value in Redis is not one of the limiter’s; reset() repairs it'
