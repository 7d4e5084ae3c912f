/** Compares an answer that a page shows with the answer that its command got. */

const kindOf = (value: unknown) =>
  Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value

type Members = Readonly<Record<string, unknown>>

/**
 * Differences in form: other members, other types, another boolean. All other values are examples, and a list may be
 * shorter than it is shown. Undefined if the form is the same.
 */
export function differenceOf(shown: unknown, real: unknown, path: string): string | undefined {
  if (kindOf(shown) !== kindOf(real)) return `${path} is ${JSON.stringify(real)}`
  if (typeof shown === 'boolean' && shown !== real) return `${path} is ${real}`
  if (Array.isArray(shown) && Array.isArray(real)) {
    return shown.length > 0 && real.length > 0
      ? differenceOf(shown[0], real[0], `${path}[0]`)
      : undefined
  }
  if (kindOf(shown) !== 'object') return undefined
  const names = new Set([...Object.keys(shown as Members), ...Object.keys(real as Members)])
  for (const name of names) {
    const [one, other] = [(shown as Members)[name], (real as Members)[name]]
    const difference = differenceOf(one, other, `${path}.${name}`)
    if (difference) return difference
  }
  return undefined
}

const id = /^[0-9a-f]{8}-[0-9a-f-]{27}/

/** Each id of the page, with the id at the same place of the real answer. */
export function pairsOf(shown: unknown, real: unknown): [shown: string, real: string][] {
  if (typeof shown === 'string' && typeof real === 'string') {
    return id.test(shown) ? [[shown, real]] : []
  }
  if (shown === null || real === null || typeof shown !== 'object' || typeof real !== 'object') {
    return []
  }
  return Object.entries(shown).flatMap(([name, value]) => pairsOf(value, (real as Members)[name]))
}
