/** A bounded cache. A full map forgets its older half at once, so reads need no bookkeeping. */
export function createBoundedMap<Value>(maxSize: number) {
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  return {
    isEmpty: () => young.size === 0 && old.size === 0,
    get: (key: string) => young.get(key) ?? old.get(key),
    set(key: string, value: Value): void {
      if (young.size >= maxSize / 2) {
        old = young
        young = new Map()
      }
      young.set(key, value)
    },
    delete(key: string): void {
      young.delete(key)
      old.delete(key)
    },
    clear(): void {
      young = new Map()
      old = new Map()
    },
  }
}
