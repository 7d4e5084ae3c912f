import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const { href } = new URL('../../src/base/stop-on-signals.ts', import.meta.url)

/** A process that closes like this. Resolves when it listens to signals. */
async function start(close: string) {
  const source = `
    import { stopOnSignals } from '${href}'
    const log = { stopping: (reason) => console.log('stopping:', reason), fatal: console.error }
    stopOnSignals(Promise.resolve({ log, close: ${close} }), 600_000)
    setInterval(() => {}, 60_000)
    console.log('listens')`
  const child = spawn(process.execPath, ['--input-type=module', '-e', source])
  releaseLater(() => child.kill('SIGKILL'))
  let output = ''
  child.stdout.on('data', (text) => {
    output += text
  })
  const exited = once(child, 'close').then(([code]) => code as number)
  await eventually(() => output.includes('listens'))
  return { child, exited, output: () => output }
}

test('one Ctrl-C that arrives twice is one: the process closes, and ends with code 0', async () => {
  const { child, exited, output } = await start(
    '() => new Promise((resolve) => setTimeout(resolve, 100))',
  )
  child.kill('SIGINT')
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
  expect(output().match(/stopping/g)).toHaveLength(1)
})

test('a second Ctrl-C while it closes ends it with code 1', async () => {
  const { child, exited } = await start('() => new Promise(() => {})')
  await eventually(() => !child.kill('SIGINT') || child.exitCode !== null)
  expect(await exited).toBe(1)
})
