import type { Part } from '../policy/compile.ts'
import type { Check } from '../store.ts'
import type { Slot } from './batch.ts'
import type { Keys } from './keys.ts'

/** Where a check's values are: one slot on a server, one or more in a cluster, widest windows first. */
export function createSlots(keysOf: Keys, isCluster: boolean) {
  return function slotsOf(check: Check): Slot[] {
    const { policy, parts, subjects, isSolved } = check
    const keys = parts.map((part) => keysOf.valueKey(subjects[part.ruleIndex] ?? '') + part.suffix)
    const slotOf = (own: readonly Part[], ownKeys: readonly string[]): Slot => {
      const [firstKey = ''] = ownKeys
      const { requestId } = check
      const shape = own.map(({ name }) => name)
      return {
        parts: own,
        keys: ownKeys,
        permits: own.map((part) => check.permits[part.ruleIndex] ?? 1),
        requestKey:
          requestId === undefined
            ? undefined
            : keysOf.requestKey(firstKey, [policy.name, ...shape, requestId, ...subjects]),
        isSolved,
        tag: isCluster ? keysOf.tagOf(firstKey) : '',
      }
    }
    if (!isCluster) return parts.length > 0 ? [slotOf(parts, keys)] : []
    const byTag = Map.groupBy(parts.entries(), ([index]) => keysOf.tagOf(keys[index] ?? ''))
    return [...byTag.values()]
      .map((own) =>
        slotOf(
          own.map(([, part]) => part),
          own.map(([index]) => keys[index] ?? ''),
        ),
      )
      .sort((a, b) => width(b) - width(a))
  }
}

const width = ({ parts }: Slot) => Math.max(...parts.map(({ longestMs }) => longestMs))
