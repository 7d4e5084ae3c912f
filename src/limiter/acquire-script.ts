/**
 * The script of a policy: `acquire-N.lua` with the looks that its parts need and the parts themselves
 * written into it. Redis compiles it once and keeps it under its hash, so a call carries nothing but
 * keys, and the script reads its limits as constants. What may differ from call to call (permits, the
 * period of a calendar) stays an argument, so that a policy has one script for good.
 */
import { createScript, loadScript, type Script } from '../redis/script.ts'
import { type CellStore, createCellStore } from './cells.ts'
import { InvalidPolicies } from './limiter.ts'
import type { Part } from './plan.ts'
import { emptyValue, formOf, mostTimes } from './redis-values.ts'

/** Parts that are decided in one call. */
export interface ScriptPlan {
  /** Other parts, other id, also where the script is the same (the periods of calendars are not in it). */
  readonly id: number
  readonly parts: readonly Part[]
  readonly script: Script
  /** By part: where a value of an answer is read into. */
  readonly scratch: readonly CellStore[]
  args(permits: number, memoryMs: number): string[]
}

/** A refusal is one number, the wait and the window. */
export const maxWindows = 1_024
const hourMs = 3_600_000

export function createScriptPlans() {
  let plans = 0
  const acquire = loadScript('acquire-N').source
  const times = loadScript('look-times-0').source
  const lockout = loadScript('look-lockout-0').source
  const counted = loadScript('look-counted-0').source

  return function planOf(parts: readonly Part[]): ScriptPlan {
    const last = parts.at(-1)
    if (last && last.firstWindow + last.windows.length > maxWindows) {
      throw new InvalidPolicies(`a policy has more than ${maxWindows} windows`)
    }
    const calendars = parts.filter((part) => part.calendar)
    const looks = new Set(parts.map(lookOf))
    const used = [
      looks.has('times') || looks.has('lockout') ? times : '',
      looks.has('lockout') ? lockout : '',
      looks.has('counted') ? counted : '',
    ]
    const plan = parts.map((part) => luaPart(part, calendars.indexOf(part)))
    const source = acquire.replace(
      'local plan = {}',
      () => `${used.join('')}\nlocal plan = { ${plan.join(', ')} }`,
    )
    return {
      id: plans++,
      parts,
      // A server that does not know it yet is sent it by every call under way, so without the comments.
      script: createScript('acquire-N', source.replaceAll(/^ *--.*\n/gm, '')),
      scratch: parts.map((part) => createCellStore(part, 1)),
      args(permits, memoryMs) {
        const args = [String(permits), String(memoryMs)]
        for (const { calendar } of calendars) {
          const period = calendar?.latest()
          args.push(String(period?.startsAt), String(period?.endsAt))
        }
        return args
      },
    }
  }
}

const lookOf = (part: Part) => (part.rule.lock ? 'lockout' : part.isExact ? 'times' : 'counted')

/** A part as a Lua table: limits and windows in turn, then what its look needs to know. */
function luaPart(part: Part, calendar: number): string {
  const { rule, longestMs } = part
  const fields: Record<string, string | number | boolean | undefined> = {
    look: lookOf(part),
    form: formOf(part).code,
    head: formOf(part).head,
    empty: luaString(emptyValue(part)),
    first: part.firstWindow,
    weight: rule.permits,
    // An observed rule counts in all of its parts or in none, so the script must know them as one.
    observe: rule.mode === 'observe' ? part.ruleIndex + 1 : undefined,
    longest: longestMs,
    ttl: `'${longestMs}'`,
    trust: hourMs + (rule.lock?.maxLockMs ?? 0),
    most: mostTimes(part),
    wide: formOf(part).size === 6 || undefined,
    lock: rule.lock?.lockMs,
    growth: rule.lock?.growth,
    maxLock: rule.lock?.maxLockMs,
    whole: part.isWhole || undefined,
    granule: part.granuleMs > 1 ? part.granuleMs : undefined,
    start: part.calendar ? `ARGV[${3 + 2 * calendar}] + 0` : undefined,
    stop: part.calendar ? `ARGV[${4 + 2 * calendar}] + 0` : undefined,
  }
  const windows = part.windows.flatMap((one) => [one.limit, one.windowMs])
  const named = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name} = ${value}`],
  )
  return `{ ${[...windows, ...named].join(', ')} }`
}

function luaString(bytes: Buffer): string {
  return `'${[...bytes].map((byte) => `\\${String(byte).padStart(3, '0')}`).join('')}'`
}
