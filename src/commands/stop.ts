/** Ends a command whose arguments or settings are wrong. */
export function stop(message: string): never {
  console.error(message)
  process.exit(1)
}

/** What `read` makes of the arguments; where it throws, ends the command with the reason and the usage. */
export function orUsage<Result>(usage: string, read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    return stop(`${(error as Error).message}\n\n${usage}`)
  }
}

/** The address of PostgreSQL; ends the command where there is none. */
export function databaseUrlOrStop(): string {
  return (
    process.env.DATABASE_URL ||
    stop('DATABASE_URL is not set, e.g. postgresql://postern:secret@localhost:5432/postern')
  )
}
