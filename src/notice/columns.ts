/** Turns rows into the values of one statement: one array per column, the form that `unnest` needs. */
export function columns<Item>(
  items: readonly Item[],
  picks: readonly (keyof Item | ((item: Item) => unknown))[],
): unknown[][] {
  return picks.map((pick) =>
    items.map((item) => (typeof pick === 'function' ? pick(item) : (item[pick] ?? null))),
  )
}

/** For a batcher of statements that would wait for each other. */
export const oneAtATime = { maxItems: 100, maxConcurrent: 1 }

/**
 * Repeats the condition of the join in a form that always uses the primary key. The planner does not know the length
 * of an array, and with a guess it reads the whole table.
 */
export const byIndex = 'n.id = ANY ($1::uuid[])'

/** `byIndex` with the range of the ids. A plan without values needs the range to find the partitions. */
export const amongIds = (first: number) =>
  `${byIndex} AND n.id >= $${first}::uuid AND n.id <= $${first + 1}::uuid`

/** The values of `amongIds`. Ids sort in the same order as texts. */
export function rangeOfIds(ids: readonly string[]): [string | undefined, string | undefined] {
  const sorted = ids.toSorted()
  return [sorted[0], sorted.at(-1)]
}

export const rangeOf = (rows: readonly { id: string }[]) => rangeOfIds(rows.map(({ id }) => id))
