/**
 * What the log says of an error: name, code, message and stack, for drivers put rows and parameters into other members. Of
 * an error about a value not even the message, which quotes it: its code and its frames say what went wrong and where.
 */
export function errorFacts(error: unknown) {
  if (!(error instanceof Error)) return { error: String(error) }
  const cause = error.cause instanceof Error ? error.cause : undefined
  const quotes = quotesValues(error)
  return {
    error: error.name,
    code: codeOf(error) ?? (cause && codeOf(cause)),
    message: quotes ? undefined : error.message,
    cause: cause && !quotesValues(cause) ? cause.message : undefined,
    stack: quotes ? framesOf(error) : error.stack,
  }
}

/** Prisma's code, or the SQLSTATE that it wraps. */
function codeOf(error: Error): unknown {
  const { code, cause } = error as { code?: unknown; cause?: { originalCode?: unknown } | null }
  return code ?? cause?.originalCode
}

/**
 * Whether an error is about the values of a statement: SQLSTATE classes 22 (data) and 23 (constraints), and all that
 * Prisma says of a request, whose messages show arguments of the call, but what is about the connection (P1…).
 */
function quotesValues(error: Error): boolean {
  const code = String(codeOf(error) ?? '')
  if (/^PrismaClient.*(Request|Validation)Error$/.test(error.name)) return !/^P1\d{3}$/.test(code)
  return /^2[23][0-9A-Z]{3}$/.test(code)
}

/** A stack begins with the message, of any number of lines; one that was made with another message is left out. */
function framesOf({ message, stack = '' }: Error): string | undefined {
  const at = stack.indexOf(message)
  if (at === -1) return undefined
  const lines = stack.slice(at + message.length).split('\n')
  return lines.filter((line) => line.startsWith('    at ')).join('\n')
}
