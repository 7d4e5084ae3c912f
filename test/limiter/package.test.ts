/**
 * The limiter as others get it: packed, installed with npm into a project that is not ours, and used
 * there. npm takes from its cache what `npm ci` has left in it.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, inject, test } from 'vitest'

const run = promisify(execFile)
const repository = fileURLToPath(new URL('../../', import.meta.url))

describe('postern/limiter from a packed tarball, in a project outside the repository', () => {
  let project: string

  beforeAll(async () => {
    project = await mkdtemp(join(inject('runFolder'), 'consumer-'))
    await run('npm', ['run', 'prepack'], { cwd: repository })
    const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', project]
    const { stdout } = await run('npm', pack, { cwd: repository })
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
    await writeFile(join(project, 'package.json'), '{"type":"module"}')
    const ours = JSON.parse(await readFile(join(repository, 'package.json'), 'utf8'))
    const versions = { ...ours.dependencies, ...ours.devDependencies }
    const beside = ['express', '@types/express', '@types/node'].map(
      (name) => `${name}@${versions[name]}`,
    )
    const install = ['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund']
    await run('npm', [...install, `./${filename}`, ...beside], { cwd: project })
  }, 180_000)

  /** Runs a program of the project; returns what it printed. */
  async function use(program: string): Promise<string[]> {
    expect(program.trim().split('\n').length).toBeLessThan(20)
    const file = join(project, 'program.js')
    await writeFile(file, program)
    const { stdout } = await run(process.execPath, [file], { cwd: project, timeout: 15_000 })
    return stdout.trim().split('\n')
  }

  test('the in-process limiter', async () => {
    const printed = await use(`
import { createLimiter } from 'postern/limiter'

const limiter = createLimiter({
  policies: {
    captcha: [{ name: 'recipient', key: '{channel}:{to}', sliding: ['1 per 60s', '5 per 1h'] }],
  },
  maxSubjects: 10_000,
})
const fields = { channel: 'sms', to: '+8613800138000' }
console.log(limiter.tryAcquire('captcha', fields).admitted)
const refusal = await limiter.acquire('captcha', fields)
console.log(refusal.admitted, refusal.rule, refusal.window, refusal.retryAfterMs > 59_000)
`)
    expect(printed).toEqual(['true', 'false recipient 60s true'])
  })

  test('the function wrapper', async () => {
    const printed = await use(`
import { createLimiter, RateLimitedError, withRateLimit } from 'postern/limiter'

const policies = { mail: [{ name: 'to', key: '{to}', fixed: '2 per 60s' }] }
const limiter = createLimiter({ policies })
const send = withRateLimit(limiter, 'mail', (to) => ({ to }), async (to) => 'sent to ' + to)
try {
  for (;;) console.log(await send('a@example.org'))
} catch (error) {
  console.log(error instanceof RateLimitedError, error.rule, error.window)
}
`)
    expect(printed).toEqual(['sent to a@example.org', 'sent to a@example.org', 'true to 60s'])
  })

  test('the Express middleware, over Redis', async () => {
    const printed = await use(`
import express from 'express'
import { Redis } from 'ioredis'
import { createLimiter, rateLimit } from 'postern/limiter'

const redis = new Redis('${inject('redisUrl')}')
const policies = { login: [{ name: 'tries', key: '{user}', lockout: { limit: 1, window: '5m', lock: '15m' } }] }
const limiter = createLimiter({ policies, redis, keyPrefix: 'consumer-${process.pid}:', deadlineMs: 5000 })
const user = { user: 'owner' }
const server = express()
  .get('/login', rateLimit(limiter, 'login', () => user), (req, res) => res.send('in'))
  .listen(0, async () => {
    const url = 'http://127.0.0.1:' + server.address().port + '/login'
    for (const status of [200, 429]) console.log((await fetch(url)).status === status)
    await limiter.reset('login', user)
    process.exit()
  })
`)
    expect(printed).toEqual(['true', 'true'])
  })

  test('its types hold for a strict TypeScript project', async () => {
    const program = `import { createLimiter, type Decision, withRateLimit } from 'postern/limiter'
const limiter = createLimiter({ policies: { p: [{ name: 'r', key: '{to}', sliding: '1 per 1s' }] } })
const decision: Decision = limiter.tryAcquire('p', { to: 'x' })
export const wait: number = decision.admitted ? decision.nextInMs : decision.retryAfterMs
export const send: (to: string) => Promise<number> = withRateLimit(limiter, 'p', (to: string) => ({ to }), (to) => to.length)
`
    await writeFile(join(project, 'program.ts'), program)
    const options = [
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--types',
      'node',
    ]
    await run(join(repository, 'node_modules', '.bin', 'tsc'), [...options, 'program.ts'], {
      cwd: project,
    })
  })
})
