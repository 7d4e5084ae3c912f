/** The formats between TypeScript and Lua: the plan of a policy, the values in Redis, the holds of a refusal. */
import { LimiterUnavailable } from '../errors.ts'
import type { Hold } from '../kinds.ts'
import { type CompiledPolicy, maxWindows, type Part } from '../policy/compile.ts'
import type { Check } from '../store.ts'
import { correct, type Uses } from '../uses.ts'

/** Length in bytes of a time, and of a number of uses. */
const timeBytes = 6
const countBytes = 4
const useBytes = timeBytes + countBytes

/** The position of the first use in a value. Lua counts from 1. */
export const firstByte = ({ first }: Part) => 1 + (first / 2) * useBytes

/** The parts as lua/acquire-N.lua reads them. After a solved challenge, rules in mode challenge only observe. */
export function planOf({ asks, isSolved }: Check): string {
  const plan = asks.map(({ part, permits }) => {
    const { rule, id, longestMs, granuleMs, trustMs } = part
    return {
      id,
      kind: rule.kind,
      mode: isSolved && rule.mode === 'challenge' ? 'observe' : rule.mode,
      rule: rule.name,
      permits,
      windows: part.windows.map(({ limit, windowMs, index }) => ({ limit, ms: windowMs, index })),
      longestMs,
      granuleMs,
      trustMs,
      first: firstByte(part),
      ...rule.own,
      ...part.calendar?.latest(),
    }
  })
  return JSON.stringify(plan)
}

/** Reads a hold of lua/acquire-N.lua: one number with wait and window, so the greatest number has the longest wait. */
export function unpackHold({ windows }: CompiledPolicy, packed: number): Hold {
  const window = windows[maxWindows - 1 - (packed % maxWindows)]
  if (!window) throw new LimiterUnavailable('Redis named a window that the policy does not have')
  return { waitMs: Math.floor(packed / maxWindows), window }
}

/** The uses in a value. Throws `LimiterUnavailable` if the value is not the limiter's. */
export function usesOf(part: Part, value: unknown, now: number): Uses {
  if (!Buffer.isBuffer(value) || value.length === 0) return part.empty
  if (value.length < firstByte(part) || value.length % useBytes !== countBytes) {
    throw new LimiterUnavailable(notOurs)
  }
  const uses: Uses = []
  let at = 0
  for (; uses.length < part.first; at += useBytes) {
    uses.push(value.readUIntBE(at, timeBytes), value.readUInt32BE(at + timeBytes))
  }
  uses.push(0)
  const before = value.readUInt32BE(value.length - countBytes)
  for (; at + useBytes < value.length; at += useBytes) {
    const made = value.readUInt32BE(at + timeBytes)
    uses.push(value.readUIntBE(at, timeBytes), (made - before) >>> 0)
  }
  return correct(part, uses, now)
}

export const notNumbers = 'the connection returns numbers as texts (stringNumbers)'
export const notOurs = 'a value in Redis is not one of the limiter’s; reset() repairs it'
