/** ECMAScript gives `source`, the text of a single value. The types do not have it yet. */
type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/** The value of a JSON text; undefined for invalid JSON. */
export function parseJson(text: string, revive?: Reviver): unknown {
  try {
    return JSON.parse(text, revive as (key: string, value: unknown) => unknown)
  } catch {
    return undefined
  }
}

/** The object in a JSON text; undefined for anything else. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  const value = parseJson(text)
  return isObject(value) ? value : undefined
}

/** The value of an own member; undefined for a key that only a prototype has. */
export function ownEntry<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The objects in a list; none for any other value. */
export const objectsIn = (list: unknown): Record<string, unknown>[] =>
  Array.isArray(list) ? list.filter(isObject) : []
