import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { beginTest, endFile, endTest } from './release.ts'
import { eventually } from './wait.ts'

/**
 * Runs around every test file: closes what the tests opened, then fails the file if a socket, a
 * server, a child process or a timer is still open. These hooks are registered first, so they are the
 * last to run.
 */
let before: Record<string, number>

beforeAll(() => {
  before = openHandles()
})
beforeEach(beginTest)
afterEach(endTest)
afterAll(async () => {
  await endFile()
  // Sockets kept alive by fetch end by themselves a few seconds after their last use.
  await eventually(
    () => {
      const left = Object.entries(openHandles()).filter(([kind, n]) => n > (before[kind] ?? 0))
      if (left.length > 0) throw new Error(`left open by this file: ${JSON.stringify(left)}`)
    },
    { withinMs: 8_000 },
  )
})

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

function openHandles(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) {
    if (watchedKinds.has(kind)) counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}
