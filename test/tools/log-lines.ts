import { vi } from 'vitest'
import { createLog, type Log } from '../../src/base/log.ts'

/** The lines that a log writes while `use` runs. */
export async function linesOf(use: (log: Log) => void): Promise<string> {
  let text = ''
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((chunk, ...more) => {
    text += chunk
    const done = more.at(-1)
    if (typeof done === 'function') done()
    return true
  })
  try {
    const log = createLog({ level: 'info', process: 'api' })
    use(log)
    await log.close()
  } finally {
    write.mockRestore()
  }
  return text
}
