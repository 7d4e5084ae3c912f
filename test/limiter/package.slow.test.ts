/**
 * The limiter as other projects get it: packed, installed with npm into empty projects, and used there. Every example
 * of its README runs as printed. npm uses the cache that `npm ci` has filled.
 */
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { startServer } from '../examples/run-example.ts'
import { environmentWithNode } from '../tools/node-versions.ts'

const run = promisify(execFile)
const repository = fileURLToPath(new URL('../../', import.meta.url))
const readme = await readFile(join(repository, 'src/limiter/README.md'), 'utf8')

/** Programs of the README by file, each with its output. */
const examples = [...readme.matchAll(/```(?:js|ts) (\S+)\n(.*?)```\n\n```text\n(.*?)```/gs)].map(
  ([, file = '', source = '', printed = '']) => ({ file, source, printed }),
)

let project: string
let tarball: string

beforeAll(async () => {
  project = await mkdtemp(join(inject('runFolder'), 'consumer-'))
  const pack = ['run', '--silent', 'pack:limiter', '--', '--pack-destination', project]
  const { stdout } = await run('npm', pack, { cwd: repository })
  tarball = join(project, stdout.trim().split('\n').at(-1) ?? '')
  await writeFile(join(project, 'package.json'), '{"type":"module"}')
  await install(tarball)
}, 180_000)

async function install(...packages: string[]): Promise<void> {
  const quietly = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund']
  await run('npm', ['install', ...quietly, ...packages], { cwd: project })
}

async function sizeOf(path: string): Promise<number> {
  const entry = await stat(path)
  if (!entry.isDirectory()) return entry.size
  const sizes = (await readdir(path)).map((name) => sizeOf(join(path, name)))
  return (await Promise.all(sizes)).reduce((a, b) => a + b, 0)
}

describe('postern-limiter, installed into an empty project', () => {
  test('an install is what its README describes, and has nothing of the service', async () => {
    const folder = join(project, 'node_modules')
    const installed = (await readdir(folder)).filter((name) => !name.startsWith('.'))
    expect(installed).toEqual(['croner', 'postern-limiter'])
    const [, told] = /An install is two packages and ([\d.]+) MB/.exec(readme) ?? []
    expect(((await sizeOf(folder)) / 1e6).toFixed(1)).toBe(told)
    const bundle = await readFile(join(folder, 'postern-limiter/cjs/index.js'), 'utf8')
    expect(bundle).not.toMatch(/[\u4e00-\u9fff]|prisma/i)
    expect(bundle).toContain('lockout')
    // The bundle contains zod, whose licence wants its notice.
    const licence = await readFile(join(folder, 'postern-limiter/LICENSE'), 'utf8')
    expect(licence).toMatch(/Postern[\s\S]+Colin McDonnell/)
  })

  test('publint and arethetypeswrong find nothing', async () => {
    const { messages } = await publint({ pkgDir: join(project, 'node_modules/postern-limiter') })
    expect(messages).toEqual([])
    const { buffer, byteOffset, byteLength } = await readFile(tarball)
    const bytes = new Uint8Array(buffer, byteOffset, byteLength)
    const analysis = await checkPackage(createPackageFromTarballData(bytes))
    expect(analysis.types && 'problems' in analysis ? analysis.problems : undefined).toEqual([])
  })

  test('its types hold without ioredis, which in process is not installed, and without types of Node', async () => {
    await writeFile(
      join(project, 'alone.ts'),
      `import { createLimiter } from 'postern-limiter'
const limiter = createLimiter({ policies: { p: [{ name: 'r', key: '{to}', sliding: '1 per 1s' }] } })
export const isAdmitted: boolean = limiter.tryAcquire('p', { to: 'x' }).admitted
`,
    )
    const strict = ['--noEmit', '--strict', '--target', 'es2024', '--module', 'nodenext']
    const tsc = join(repository, 'node_modules', '.bin', 'tsc')
    const { stdout } = await run(tsc, [...strict, '--types', '', 'alone.ts'], { cwd: project })
    expect(stdout).toBe('')
  })

  test('made by require and used by import: its errors are the errors of import, and the middleware answers 503 and 400', async () => {
    await writeFile(
      join(project, 'both.mjs'),
      `import { createRequire } from 'node:module'
import { LimiterUnavailable, MissingField, rateLimit } from 'postern-limiter'
const { createLimiter } = createRequire(import.meta.url)('postern-limiter')
const policies = { p: [{ name: 'r', key: '{to}', sliding: '1 per 1s' }] }
const away = { isCluster: false, callBuffer: () => Promise.reject(new Error('away')) }
const limiter = createLimiter({ policies, redis: away, deadlineMs: 1_000 })
const errors = [{ to: 'x' }, {}].map((fields) => limiter.acquire('p', fields).catch((error) => error))
const [unavailable, missing] = await Promise.all(errors)
const statusOf = async (fields) => {
  const response = { statusCode: 200, setHeader() {}, end() {} }
  await rateLimit(limiter, 'p', () => fields)({ headers: {} }, response, () => {})
  return response.statusCode
}
const seen = [unavailable instanceof LimiterUnavailable, missing instanceof MissingField]
console.log(JSON.stringify([...seen, await statusOf({ to: 'x' }), await statusOf({ to: undefined })]))
process.exit()
`,
    )
    const { stdout } = await run(process.execPath, ['both.mjs'], { cwd: project })
    expect(JSON.parse(stdout)).toEqual([true, true, 503, 400])
  })
})

describe('every example of the README', () => {
  beforeAll(async () => {
    const manifest = await readFile(join(repository, 'package.json'), 'utf8')
    const { dependencies, devDependencies } = JSON.parse(manifest)
    const versions = { ...dependencies, ...devDependencies }
    const names = ['express', '@types/express', '@types/node', 'fastify', 'hono', 'ioredis']
    const beside = [...names, 'rate-limiter-flexible'].map((name) => `${name}@${versions[name]}`)
    await install(tarball, ...beside, 'ioredis5@npm:ioredis@5')
    for (const { file, source } of examples) await writeFile(join(project, file), source)
  }, 180_000)

  test('is found: Redis, in process, Express, Fastify, Hono, node:http, a function, insurance', () => {
    expect(examples.map(({ file }) => file).sort()).toEqual([
      'burnt-quota.mjs',
      'express.ts',
      'fastify.mjs',
      'function.mjs',
      'hono.mjs',
      'in-process.cjs',
      'insurance.mjs',
      'node-http.mjs',
      'redis.mjs',
    ])
  })

  test.each(examples)('$file prints what stands below it', async ({ file, printed }) => {
    const env = { ...process.env, REDIS_URL: inject('redisUrl'), NODE_NO_WARNINGS: '1' }
    const { stdout } = await run(process.execPath, [file], { cwd: project, env, timeout: 120_000 })
    expect(stdout).toBe(printed)
  })

  test('examples/limiter, which the README of the repository shows: three wrong passwords lock, right ones do not count', async () => {
    await copyFile(join(repository, 'examples/limiter/app.mjs'), join(project, 'app.mjs'))
    const env = { REDIS_URL: inject('redisUrl') }
    const { origin } = await startServer('app.mjs', () => env, project)
    const statusOf = async (password: string) => {
      const response = await fetch(`${origin}/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ user: 'ada', password }),
      })
      await response.text()
      return response.status
    }
    for (let n = 0; n < 4; n++) expect(await statusOf('open sesame')).toBe(200)
    for (let n = 0; n < 3; n++) expect(await statusOf('wrong')).toBe(401)
    expect(await statusOf('open sesame')).toBe(429)
  })

  test.each([
    ['--module', 'nodenext'],
    ['--module', 'node16'],
    ['--module', 'esnext', '--moduleResolution', 'bundler'],
    ['--module', 'commonjs', '--moduleResolution', 'bundler'],
  ])('its types hold under strict with %s %s', async (...module) => {
    const strict = ['--noEmit', '--strict', '--target', 'es2024', '--types', 'node']
    await writeFile(
      join(project, 'use.ts'),
      `import { Cluster, Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'
import { createLimiter, type Decision, rateLimit, withRateLimit } from 'postern-limiter'
const policies = { p: [{ name: 'r', key: '{to}', sliding: ['1 per 1s'] }] }
const limiter = createLimiter({ policies })
const decision: Decision = limiter.tryAcquire('p', { to: 'x', ip: undefined })
export const wait: number = decision.admitted ? decision.nextInMs : decision.retryAfterMs
export const send: (to: string) => Promise<number> = withRateLimit(limiter, 'p', (to: string) => ({ to }), (to) => to.length)
export const handler = rateLimit(limiter, 'p', (req) => ({ to: req.body?.to, ip: req.ip }), { message: 'slowly' })
export const others = [new Redis(), new Cluster([]), new Redis5()].map((redis) => createLimiter({ policies, redis }))
`,
    )
    const tsc = join(repository, 'node_modules', '.bin', 'tsc')
    await run(tsc, [...strict, ...module, 'use.ts'], { cwd: project })
  })

  test('over ioredis 5, as CommonJS, under the test runner of Node 20, the oldest that it is for', async () => {
    await writeFile(
      join(project, 'limits.test.cjs'),
      `const { createLimiter } = require('postern-limiter')
const Redis = require('ioredis5')
require('node:test').test('the third is refused', async () => {
  const redis = new Redis(process.env.REDIS_URL)
  const policies = { p: [{ name: 'r', key: '{to}', sliding: '2 per 60s' }] }
  const limiter = createLimiter({ policies, redis, keyPrefix: 'ioredis5:', deadlineMs: 5_000 })
  const seen = []
  for (let call = 0; call < 3; call++) seen.push((await limiter.acquire('p', { to: 'x' })).admitted)
  require('node:assert').deepEqual(seen, [true, true, false])
  redis.disconnect()
})
`,
    )
    const env = { ...(await environmentWithNode(20)), REDIS_URL: inject('redisUrl') }
    const { stdout } = await run('node', ['--test', 'limits.test.cjs'], { cwd: project, env })
    expect(stdout).toMatch(/pass 1$/m)
  }, 120_000)
})
