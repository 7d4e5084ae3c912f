import { afterAll, afterEach, beforeEach, expect, vi } from 'vitest'
import { beginTest, endFile, endTest } from './release.ts'
import { eventually } from './wait.ts'
import { watchFile } from './watchdog.ts'

/**
 * Runs around every test file. It closes everything that the tests opened. Then it fails the file if a socket, a
 * server, a child process or a timer is still open. These hooks are registered first, so they run last. Files follow
 * each other in one process and share its loaded modules. So a file's spies and clock end with it, and no file mocks
 * a module.
 */
watchFile(expect.getState().testPath ?? 'a test file')
beforeEach(beginTest)
afterEach(async ({ signal }) => {
  // The clock of a test ends with it. The next test would wait for a clock that stands still.
  vi.useRealTimers()
  wasCutOff ||= signal.reason?.name === 'TestRunAbortError'
  await unlessCutOff(endTest)
})
afterAll(async () => {
  await unlessCutOff(endFile)
  vi.restoreAllMocks()
  vi.useRealTimers()
  if (wasCutOff) return
  // Vitest's own timers end within a moment. Sockets that fetch keeps alive end within some seconds.
  await eventually(() => {
    const left = openHandles()
    if (left.length > 0) throw new Error(`left open by this file: ${left.join(', ')}`)
  })
})

/**
 * After a failure, `--bail` ends the tests that run in other processes. What they leave open is no fault of theirs, and
 * would hide the failure.
 */
let wasCutOff = false

async function unlessCutOff(end: () => Promise<void>): Promise<void> {
  try {
    await end()
  } catch (error) {
    if (!wasCutOff) throw error
  }
}

const watchedKinds = new Set([
  'TCPSocketWrap',
  'TCPServerWrap',
  'TLSWrap',
  'UDPWrap',
  'ProcessWrap',
  'FSEventWrap',
  'StatWatcher',
  'Timeout',
])

function openHandles(): string[] {
  return process.getActiveResourcesInfo().filter((kind) => watchedKinds.has(kind))
}
