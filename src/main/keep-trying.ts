import type { Closers } from '../base/closers.ts'
import type { Log } from '../base/log.ts'

/** For what needs PostgreSQL at start: resolves after the first try, because the process is up before its servers are. */
export function keepTrying(closers: Closers, log: Log, work: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  closers.onClose(() => {
    isClosed = true
    clearTimeout(timer)
  })
  const attempt = async () => {
    try {
      await work()
    } catch (error) {
      // A try that was under way at the close must not begin anew.
      if (isClosed) return
      log.backgroundFailed('bootstrap key', error)
      timer = setTimeout(attempt, 1_000)
    }
  }
  return attempt()
}
