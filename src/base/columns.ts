/** Many rows as the values of one statement: one array per column, as `unnest` takes them. */
export function columns<Item>(
  items: readonly Item[],
  pick: readonly ((item: Item) => unknown)[],
): unknown[][] {
  return pick.map((column) => items.map(column))
}
