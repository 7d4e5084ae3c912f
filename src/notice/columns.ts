/** Turns rows into the values of one statement: one array per column, the form that `unnest` needs. */
export function columns<Item>(
  items: readonly Item[],
  picks: readonly (keyof Item | ((item: Item) => unknown))[],
): unknown[][] {
  return picks.map((pick) =>
    items.map((item) => (typeof pick === 'function' ? pick(item) : (item[pick] ?? null))),
  )
}
