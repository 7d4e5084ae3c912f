let people = 0

/** The number of a person who is in no other test of this process. */
export function newPhone(): string {
  people += 1
  return `+861380${String(people).padStart(7, '0')}`
}

export const newPerson = () => ({ to: newPhone(), email: `person-${people}@shop.test` })

/** A code of the same length that is not this one. */
export const otherThan = (code: string, by = 1) =>
  String((Number(code) + by) % 10 ** code.length).padStart(code.length, '0')
