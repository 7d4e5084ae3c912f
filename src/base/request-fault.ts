/**
 * The status if the request caused this error. Undefined for a fault of this program.
 *
 * The parsers of Express mark an error that the request caused with `expose`. Its router gives a URIError for a bad escape
 * in the path a status. An error of a vendor's client can have a status and a type too, and is a fault. A message with
 * `expose` can quote the request, so it is not logged. A plugin can throw a value that throws when it is read.
 */
export function statusOfRequestFault(error: unknown): number | undefined {
  try {
    if (!(error instanceof Error)) return undefined
    const { status, expose } = error as { status?: unknown; expose?: unknown }
    const isMarked = error instanceof URIError || expose === true
    return isMarked && typeof status === 'number' && status >= 400 && status < 500
      ? status
      : undefined
  } catch {
    return undefined
  }
}
