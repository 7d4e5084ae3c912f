/** The start, reload and end of a process: its `.env`, its signals, and obstacles. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, inject, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { findFreePort } from '../../src/dev/server-process.ts'
import { testDatabase } from '../tools/database.ts'
import { childrenOf } from '../tools/own-servers.ts'
import { clientOf, noLimits, processEnv } from '../tools/postern.ts'
import { commonEnv, runCommand, startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const [redis, database] = [await testRedis(), await testDatabase()]

function settings(policyFile: Record<string, unknown> = {}) {
  const env = processEnv({
    redis,
    database,
    policyFile: { policies: noLimits, ...policyFile },
    env: { LOG_LEVEL: 'info' },
  })
  return env
}

const newFolder = () => mkdtempSync(join(inject('runFolder'), 'start-'))

test('an .env in the current folder is read by API, keys and migrate; what is set wins over it', async () => {
  const folder = newFolder()
  const lines = Object.entries({ ...settings(), PORT: '1' }).map(([name, value]) => {
    return `export ${name} = "${value}"`
  })
  // As an editor on Windows writes it.
  writeFileSync(join(folder, '.env'), `\ufeff${lines.join('\r\n')}\r\n`)
  const api = await startProcess('api', { cwd: folder, env: { LOG_LEVEL: 'warn' } })
  expect(api.output()).not.toContain('"msg":"ready"')
  expect(await api.terminate()).toBe(0)

  expect(await runCommand('migrate', [], {}, folder)).toMatchObject({
    code: 0,
    stdout: 'nothing to apply: the schema is up to date\n',
  })
  expect(await runCommand('keys', ['list'], {}, folder)).toMatchObject({ code: 0, stderr: '' })
  const elsewhere = { DATABASE_URL: 'postgresql://127.0.0.1:9/x' }
  expect(await runCommand('keys', ['list'], elsewhere, folder)).toMatchObject({ code: 1 })
})

test('an .env that cannot be read stops every command with one line about it', async () => {
  const folder = newFolder()
  mkdirSync(join(folder, '.env'))
  const commands = ['api', 'worker', 'demo', 'migrate', 'keys'] as const
  const ends = await Promise.all(commands.map((command) => runCommand(command, [], {}, folder)))
  const refused = {
    code: 1,
    stdout: '',
    stderr: 'Postern cannot start: .env cannot be read (EISDIR).\n',
  }
  expect(ends).toEqual(commands.map(() => refused))
})

test('an .env of 3 GB is refused at once', async () => {
  const folder = newFolder()
  writeFileSync(join(folder, '.env'), '')
  truncateSync(join(folder, '.env'), 3 * 2 ** 30)
  expect(await runCommand('keys', ['list'], {}, folder)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'Postern cannot start: .env cannot be read (above 1 MB).\n',
  })
})

test('SIGHUP takes policies and the limits of providers, and names every other section and template that has changed', async () => {
  const phone = { kind: 'webhook', url: 'http://127.0.0.1:9/', secret: 'a secret of the carrier' }
  const providers = { phone: { ...phone, pace: '10 per 1s' }, box: { kind: 'sandbox' } }
  const routes = { email: [{ use: ['box'] }], sms: [{ use: ['phone'] }] }
  const templates = newFolder()
  const message = join(templates, 'captcha/sms.en.txt')
  mkdirSync(join(templates, 'captcha'))
  writeFileSync(message, '{{code}}')
  const env = settings({ providers, routes, templates })
  const file = env.POSTERN_CONFIG as string
  const api = await startProcess('api', { env })
  const linesWith = (text: string) =>
    api
      .output()
      .split('\n')
      .filter((line) => line.includes(text))
      .map((line) => JSON.parse(line))
  const reloadWith = async (sections: object) => {
    const before = linesWith('policy file').length
    writeFileSync(file, stringify({ ...parse(readFileSync(file, 'utf8')), ...sections }))
    api.signal('SIGHUP')
    await eventually(() => linesWith('policy file').length > before)
    return linesWith('policy file').at(-1)
  }

  const { post } = clientOf(api.url, env.BOOTSTRAP_SECRET_KEY as string)
  const acquire = () => post('/v1/limits/shop/acquire', { fields: { user: 'ada' } })
  expect((await acquire()).status).toBe(404)
  const shop = [{ name: 'one', key: '{user}', sliding: '1 per 1h' }]
  expect(
    await reloadWith({
      policies: { ...noLimits, shop },
      providers: { ...providers, phone: { ...phone, pace: '5 per 1s' } },
    }),
  ).toMatchObject({ level: 30, reloaded: ['policies', 'providers.phone'] })
  expect([(await acquire()).status, (await acquire()).status]).toEqual([200, 429])

  const otherUrl = { ...providers, phone: { ...phone, url: 'http://127.0.0.1:10/' } }
  const told = await reloadWith({ providers: otherUrl, code: { length: 6 } })
  expect(told).toMatchObject({ level: 40, reloaded: ['providers.phone'] })
  expect(told.needRestart.sort()).toEqual(['code', 'providers.phone'])
  // Reported again while it is true.
  expect((await reloadWith({})).needRestart.sort()).toEqual(['code', 'providers.phone'])
  expect(await reloadWith({ providers, code: {} })).toMatchObject({
    level: 30,
    reloaded: ['providers.phone'],
  })

  writeFileSync(message, 'Your code: {{code}}')
  expect((await reloadWith({})).needRestart).toEqual(['templates'])

  const refused = await reloadWith({ colour: 'red', policies: { shop: 1 } })
  expect(refused).toMatchObject({ level: 50 })
  expect(refused.problems.join()).toMatch(/colour: unknown key/)
  expect((await acquire()).status).toBe(429)
  expect(await api.terminate()).toBe(0)
})

test.each([
  ['worker', 'ADMIN_PORT'],
  ['api', 'PORT'],
] as const)('%s: its %s is taken → it ends with code 1 and one line', async (role, variable) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  releaseLater(() => taken.close())
  const { port } = taken.address() as { port: number }
  const env = { ADMIN_PORT: '0', ...settings(), [variable]: String(port) }
  expect(await runCommand(role, [], env)).toMatchObject({
    code: 1,
    // Connections to Redis that were still being made are no failures.
    stdout: '',
    stderr: `Postern cannot start: port ${port} is in use; set PORT or ADMIN_PORT to another.\n`,
  })
})

test.each(['999.1.1.1', '203.0.113.9'])(
  'HOST=%s ends a process with one line that names it',
  async (HOST) => {
    const { code, stderr } = await runCommand('worker', [], { ...settings(), HOST })
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /^Postern cannot start: HOST is not an address of this machine \(.*\)\.\n$/,
    )
  },
)

test('SIGTERM at any moment of the start ends a process in time, with code 0 once it listens to it', async () => {
  await Promise.all((['api', 'worker'] as const).map(terminateAtEveryMoment))
})

async function terminateAtEveryMoment(role: 'api' | 'worker'): Promise<void> {
  const startedAt = performance.now()
  const whole = await startProcess(role, { env: settings() })
  const startMs = performance.now() - startedAt
  expect(await whole.terminate()).toBe(0)
  for (const part of [0.1, 0.4, 0.6, 0.8]) {
    const child = spawn(process.execPath, [join(root, `src/main/${role}.ts`)], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...commonEnv, ...settings(), PORT: '0', ADMIN_PORT: '0' },
    })
    let stderr = ''
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    await sleep(part * startMs)
    child.kill('SIGTERM')
    const [code, signal] = await once(child, 'close')
    expect([0, 'SIGTERM']).toContain(code ?? signal)
    expect(stderr).toBe('')
  }
}

test('a SIGHUP that ends npm leaves no process behind that it has started', async () => {
  const [port, adminPort] = [await findFreePort(), await findFreePort()]
  const npm = spawn('npm', ['run', 'start:api'], {
    cwd: root,
    stdio: 'ignore',
    env: {
      ...commonEnv,
      HOME: process.env.HOME,
      ...settings(),
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
    },
  })
  releaseLater(() => npm.kill('SIGKILL'))
  const isUp = async () => (await fetch(`http://127.0.0.1:${adminPort}/livez`)).status === 200
  await eventually(isUp, { withinMs: 120_000 })
  const [api] = childrenOf(npm.pid as number) as [number]
  releaseLater(() => isRunning(api) && process.kill(api, 'SIGKILL'))
  npm.kill('SIGHUP')
  await once(npm, 'exit')
  await eventually(() => !isRunning(api), { withinMs: 120_000 })
})

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
