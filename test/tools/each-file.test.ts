import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { repositoryRoot } from './source-files.ts'

/** Tests that the runs of this file execute. The first one never ends, and has a server open. */
const waits = (marker: string) => `
const { createServer } = await import('node:net')
const { writeFileSync } = await import('node:fs')
test('waits', async () => {
  await new Promise((listening) => createServer().listen(0, '127.0.0.1', listening))
  writeFileSync(${JSON.stringify(marker)}, '')
  await new Promise(() => {})
})`
const fails = (marker: string) => `
const { existsSync } = await import('node:fs')
test('fails', async () => {
  while (!existsSync(${JSON.stringify(marker)})) await new Promise((later) => setTimeout(later, 20))
  throw new Error('the real reason')
})`
const leaves = `
const { createServer } = await import('node:net')
test('leaves a server open', () => { createServer().listen(0, '127.0.0.1') })`

const clock = `
test('fails with another clock', () => { vi.useFakeTimers(); throw new Error('first') })
test('needs the real clock', () => { const now = performance.now(); while (performance.now() <= now); })`

/** Runs files with the real setup file, and returns the output. */
function runTests(files: Readonly<Record<string, string>>, ...flags: string[]): string {
  const folder = mkdtempSync(join(inject('runFolder'), 'each-file-'))
  const config = {
    root: folder,
    test: {
      globals: true,
      setupFiles: [join(repositoryRoot, 'test/tools/each-file.ts')],
      include: ['*.test.js'],
      pool: 'forks',
      maxWorkers: 2,
      isolate: false,
    },
  }
  writeFileSync(join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify(config)}`)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const vitest = join(repositoryRoot, 'node_modules/vitest/vitest.mjs')
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [vitest, 'run', '--config', join(folder, 'vitest.config.mjs'), ...flags],
    {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, NO_COLOR: '1', TEST_WAIT_MS: '300', TEST_SPIN_SECONDS: '2' },
    },
  )
  return stdout + stderr
}

test('after --bail 1, a test that was cut off adds no failure to the one that failed', () => {
  const marker = join(mkdtempSync(join(inject('runFolder'), 'marker-')), 'is-open')
  const files = { 'waits.test.js': waits(marker), 'fails.test.js': fails(marker) }
  const output = runTests(files, '--bail', '1')
  expect(output).toContain('the real reason')
  expect(output).not.toContain('left open by this file')
  expect(output.match(/ FAIL /g), output).toHaveLength(1)
})

describe('two files at once', () => {
  const output = runTests({ 'leaves.test.js': leaves, 'clock.test.js': clock })

  test('a file whose test left a server open fails, and names what is open', () => {
    expect(output).toContain('left open by this file: TCPServerWrap')
  })

  test('a test that failed with another clock leaves the real one to the next test', () => {
    expect(output).toMatch(/Tests {2}1 failed \| 2 passed/)
  })
})

test('a file that never gives way to another is ended, and named with the place where it stands', () => {
  const output = runTests({
    'stuck.test.js': `test('stuck', async function stuckHere() { for (;;) await null })`,
  })
  expect(output).toContain('stuck.test.js: its event loop has stood still for 2 s of work')
  expect(output).toContain('at stuckHere')
})
