/**
 * The facts of an error for the log: name, code, message and stack. Other members are left out, because drivers put
 * rows and parameters into them. If the message can quote values, the message is left out too; the code and the stack
 * frames remain.
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
 * True if the message of an error can quote values of a statement. These are SQLSTATE classes 22 (data) and 23
 * (constraints), and every Prisma request error except connection errors (P1…). A SyntaxError of JSON quotes the text.
 */
function quotesValues(error: Error): boolean {
  if (error instanceof SyntaxError) return true
  const code = String(codeOf(error) ?? '')
  if (/^PrismaClient.*(Request|Validation)Error$/.test(error.name)) return !/^P1\d{3}$/.test(code)
  return /^2[23][0-9A-Z]{3}$/.test(code)
}

/** The stack without the message at its start. Undefined if the stack was made with another message. */
function framesOf({ message, stack = '' }: Error): string | undefined {
  const at = stack.indexOf(message)
  if (at === -1) return undefined
  const lines = stack.slice(at + message.length).split('\n')
  return lines.filter((line) => line.startsWith('    at ')).join('\n')
}
