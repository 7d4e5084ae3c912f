import { type ParseArgsConfig, parseArgs } from 'node:util'

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

/**
 * The command of a program such as `keys`, its subject if it needs one, and its options. `commands`: the subject and the
 * options of each.
 */
export function readCommand<
  const Options extends NonNullable<ParseArgsConfig['options']>,
  Command extends string,
>(
  program: string,
  usage: string,
  options: Options,
  commands: Readonly<Record<Command, { needs?: string; options?: readonly (keyof Options)[] }>>,
) {
  return orUsage(usage, () => {
    const { values, positionals } = parseArgs({ allowPositionals: true, options })
    const [command, ...more] = positionals as [Command?, ...string[]]
    if (!command) return stop(usage)
    const known = Object.hasOwn(commands, command) ? commands[command] : undefined
    if (!known) throw new Error(`${program} has no command "${command}".`)
    const foreign = Object.keys(values).find((name) => !known.options?.includes(name))
    if (foreign) throw new Error(`${command} has no option --${foreign}.`)
    const subject = known.needs ? (more.shift() ?? '') : ''
    if (known.needs && !subject) throw new Error(`${command} needs ${known.needs}.`)
    if (more[0]) throw new Error(`${command} takes no "${more[0]}". Options begin with --.`)
    return { command, subject, values }
  })
}

/** Returns DATABASE_URL, or ends the command if it is not set. */
export function databaseUrlOrStop(): string {
  return (
    process.env.DATABASE_URL ||
    stop('DATABASE_URL is not set, e.g. postgresql://postern:secret@localhost:5432/postern')
  )
}
