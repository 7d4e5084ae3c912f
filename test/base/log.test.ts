/** Writes of a process whose standard output is a terminal, made by util-linux' `script`. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect, inject, test, vi } from 'vitest'
import { Unavailable } from '../../src/base/unavailable.ts'
import { openBrokenOutput } from '../tools/broken-output.ts'
import { linesOf } from '../tools/log-lines.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const logModule = new URL('../../src/base/log.ts', import.meta.url).href

/** As after an install without development dependencies. */
const withoutPrettifier = `
  import { registerHooks } from 'node:module'
  registerHooks({ resolve(name, context, next) {
    if (name === 'pino-pretty') throw Object.assign(new Error('none'), { code: 'MODULE_NOT_FOUND' })
    return next(name, context)
  } })`

const newFile = (ending: string) =>
  join(inject('runFolder'), `terminal-${randomBytes(6).toString('hex')}.${ending}`)

/** Runs a module in a terminal; resolves with what the terminal showed and the exit code. */
function runInTerminal(source: string, stdout: 'pipe' | number = 'pipe') {
  const file = newFile('mjs')
  writeFileSync(file, source)
  const child = spawn('script', ['-qec', `'${process.execPath}' '${file}'`, '/dev/null'], {
    stdio: ['ignore', stdout, 'pipe'],
    env: { ...process.env, FORCE_COLOR: '0' },
  })
  releaseLater(() => child.kill('SIGKILL'))
  let shown = ''
  child.stdout?.on('data', (chunk) => {
    shown += chunk
  })
  return {
    shown: () => stripVTControlCharacters(shown),
    exited: once(child, 'close').then(([code]) => code as number),
  }
}

const logOnce = `
  const { createLog } = await import('${logModule}')
  const log = createLog({ level: 'info', process: 'api' })
  log.ready({ api: 'http://localhost:3000' })
  await log.close()`

test('a terminal, pino-pretty installed → readable lines', async () => {
  const { shown, exited } = runInTerminal(logOnce)
  expect(await exited).toBe(0)
  expect(shown()).toMatch(/INFO.*ready/)
  expect(shown()).toContain('api: "http://localhost:3000"')
})

test('a terminal, pino-pretty not installed → JSON lines', async () => {
  const { shown, exited } = runInTerminal(`${withoutPrettifier}\n${logOnce}`)
  expect(await exited).toBe(0)
  expect(JSON.parse(shown())).toMatchObject({ level: 30, process: 'api', msg: 'ready' })
})

test('a terminal that takes nothing any more → the process goes on and ends with code 0', async () => {
  const { fd, handOver } = openBrokenOutput('stalled')
  const ended = newFile('ended')
  // Far more than terminal, `script` and pipe can hold.
  runInTerminal(
    `import { writeFileSync } from 'node:fs'
     const { createLog } = await import('${logModule}')
     let dropped = 0
     const log = createLog({ level: 'info', process: 'api', onDropped: (n) => { dropped += n } })
     process.on('exit', (code) => writeFileSync('${ended}', code + ' ' + dropped))
     for (let n = 0; n < 20_000; n++) log.ready({ api: 'x'.repeat(200) })
     await log.close()
     process.exit()`,
    fd,
  )
  handOver()
  await eventually(() => expect(readFileSync(ended, 'utf8')).toMatch(/^0 [1-9]/))
})

test('floods: of refusals, of 503s, and of requests without a valid key, ten lines a second each; of all else every line; no stack for an outage', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const request = { requestId: 'id', method: 'POST', route: '/v1/captchas', durationMs: 1 }
  const text = await linesOf((log) => {
    for (let second = 0; second < 2; second++) {
      for (let call = 0; call < 30; call++) {
        log.requestFinished({ ...request, app: 'web', status: 202 })
        log.requestFinished({ ...request, app: 'web', status: 400 })
        log.requestFinished({ ...request, app: 'web', status: 429 })
        log.requestFinished({ ...request, app: 'web', status: 503, reason: 'load' })
        log.requestFinished({ ...request, app: 'shop', status: 503 })
        log.requestFinished({ ...request, status: 200 })
        log.requestFinished({ ...request, status: 204, provider: 'twilio' })
        log.requestFinished({ ...request, status: 403, provider: 'twilio' })
        log.requestFinished({ ...request, status: 503 })
        log.requestFinished({ ...request, status: 400 })
        log.requestFinished({ ...request, status: 401 })
        log.requestFinished({ ...request, status: 500 })
        log.requestFailed('id', new Unavailable('redis', undefined))
        log.requestFailed('id', new Error('a fault'))
      }
      vi.advanceTimersByTime(1_000)
    }
  }).finally(() => vi.useRealTimers())
  const lines = text.trim().split('\n')
  const count = (app: string | undefined, ...statuses: number[]) =>
    lines
      .map((line) => JSON.parse(line))
      .filter((facts) => facts.app === app && statuses.includes(facts.status)).length
  expect(count('web', 429, 503)).toBe(20)
  expect(count(undefined, 200, 400, 401, 403, 503)).toBe(20)
  expect(count('shop', 503)).toBe(20)
  for (const status of [202, 400]) expect(count('web', status)).toBe(60)
  for (const status of [204, 500]) expect(count(undefined, status)).toBe(60)
  const failed = (message: string) => lines.filter((line) => line.includes(message)).length
  expect([failed('redis is out of reach'), failed('a fault')]).toEqual([20, 60])
  const stacks = lines.filter((line) => /\n\s+at /.test(JSON.parse(line).stack ?? ''))
  expect(stacks.every((line) => line.includes('a fault'))).toBe(true)
})

test('a line names its process, and has the facts and the error that it is about', async () => {
  const noticeId = 'a notice'
  const error = new Error('broken')
  const finished = { noticeId, state: 'failed', provider: 'mail', error: 'rejected' }
  const event = { eventId: 'an event', type: 'captcha.passed', tries: 1, reason: 'HTTP 500' }
  const tried = { noticeId, provider: 'mail', outcome: 'accepted', durationMs: 1 }
  const text = await linesOf((log) => {
    log.ready({ api: 'http://localhost:3000' })
    log.tried(tried)
    log.finished(finished)
    log.eventFailed(event)
    log.recordFailed(noticeId, error)
    log.notRendered(noticeId, 'code', error)
    log.jobFailed(noticeId, error)
  })
  const lines = text.trim().split('\n')
  const about = { noticeId, error: 'Error' }
  expect(lines.map((line) => JSON.parse(line))).toMatchObject(
    [
      { api: 'http://localhost:3000' },
      ...[tried, finished, event],
      ...[about, { ...about, template: 'code' }, about],
    ].map((facts) => ({ process: 'api', pid: process.pid, ...facts })),
  )
})
