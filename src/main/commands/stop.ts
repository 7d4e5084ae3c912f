/** Ends a command whose arguments or settings are wrong. */
export function stop(message: string): never {
  console.error(message)
  process.exit(1)
}

/** The result of `read`. If it throws, prints the reason and the usage, and ends. `--help` prints the usage. */
export function orUsage<Result>(usage: string, read: () => Result): Result {
  if (process.argv.includes('--help')) {
    console.log(usage)
    process.exit(0)
  }
  try {
    return read()
  } catch (error) {
    return stop(`${(error as Error).message}\n\n${usage}`)
  }
}

/** Returns DATABASE_URL, or ends the command if it is not set. */
export function databaseUrlOrStop(): string {
  return (
    process.env.DATABASE_URL ||
    stop('DATABASE_URL is not set, e.g. postgresql://postern:secret@localhost:5432/postern')
  )
}
