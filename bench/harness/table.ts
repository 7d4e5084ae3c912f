type Cell = string | number

/**
 * Prints the head of a Markdown table, as in docs/performance.md, with columns that also line up in a terminal.
 * Returns a function that prints a row.
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
