import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

test('findFreePort: a process without a free file descriptor → EMFILE, and no search without end', () => {
  const program = `
    import { openSync } from 'node:fs'
    import { findFreePort } from './src/dev/server-process.ts'
    try {
      for (;;) openSync('/dev/null')
    } catch {}
    process.exitCode = await findFreePort().then(() => 1, ({ code }) => (code === 'EMFILE' ? 7 : 2))`
  const limited = 'ulimit -n 64 && exec "$0" --input-type=module -e "$1"'
  const { status } = spawnSync('sh', ['-c', limited, process.execPath, program], {
    timeout: 60_000,
  })
  expect(status).toBe(7)
})
