type Cell = string | number

/**
 * Prints a table in Markdown, as `docs/performance.md` shows it, with columns that also line up in a
 * terminal. Returns what prints the next row.
 */
export function openTable(
  title: string,
  ...columns: readonly string[]
): (name: string, ...cells: readonly Cell[]) => void {
  const line = (name: string, cells: readonly Cell[]) =>
    `| ${[name.padEnd(48), ...cells.map((cell, index) => String(cell).padStart((columns[index] as string).length))].join(' | ')} |`
  console.log(`\n${line(title, columns)}\n|${'---|'.repeat(columns.length + 1)}`)
  return (name, ...cells) => console.log(line(name, cells))
}
