/**
 * Plugins in real processes: the file of examples/own-provider sends messages, and a file that cannot be used stops
 * every command.
 */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, inject, test } from 'vitest'
import { parse, stringify } from 'yaml'
import type { ConformanceCase } from '../providers/conformance.ts'
import { farEndTools } from '../providers/far-ends/http.ts'
import { testDatabase } from '../tools/database.ts'
import { clientOf, noLimits, processEnv } from '../tools/postern.ts'
import { runCommand, startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'

// @ts-expect-error: JavaScript
const acme: ConformanceCase = await import('../../examples/own-provider/acme-provider.js')
const { conformance } = acme
const [redis, database] = [await testRedis(), await testDatabase()]

/** A policy file in a separate folder, which is not the current folder of any process. */
function settings(policyFile: Record<string, unknown>, files: Record<string, string> = {}) {
  const env = processEnv({
    redis,
    database,
    policyFile: { policies: noLimits, ...policyFile },
    env: { LOG_LEVEL: 'info' },
  })
  const folder = mkdtempSync(join(inject('runFolder'), 'plugins-'))
  mkdirSync(join(folder, 'beside'))
  const config = join(folder, 'postern.yaml')
  writeFileSync(config, readFileSync(env.POSTERN_CONFIG as string, 'utf8'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const key = env.BOOTSTRAP_SECRET_KEY as string
  return { folder, key, env: { ...env, POSTERN_CONFIG: config } }
}

test('examples/own-provider: named in plugins:, it sends from a real worker; doctor and policy know it; SIGHUP keeps it', async () => {
  const farEnd = closeLater(await conformance.startFarEnd(farEndTools))
  const { env, folder, key } = settings({
    providers: { phone: { kind: 'acme', ...conformance.settings(farEnd.port) } },
    routes: { sms: [{ use: ['phone'] }], email: [] },
  })
  const plugin = relative(folder, `${repositoryRoot}examples/own-provider/acme-provider.js`)
  const policy = parse(readFileSync(env.POSTERN_CONFIG, 'utf8'))
  writeFileSync(env.POSTERN_CONFIG, stringify({ ...policy, plugins: [plugin] }))

  const [api, worker] = await Promise.all([
    startProcess('api', { env }),
    startProcess('worker', { env, cwd: join(folder, 'beside') }),
  ])
  const { post } = clientOf(api.url, key)
  const to = '+8613800138000'
  const { body } = await post('/v1/captchas', { channel: 'sms', to })
  await eventually(() => expect(farEnd.taken).toEqual([{ reference: body.id, to }]))
  expect(farEnd.complaints).toEqual([])

  const doctor = await runCommand('doctor', ['--json'], env)
  const findings: { subject: string; message: string }[] = JSON.parse(doctor.stdout)
  expect(findings.find(({ subject }) => subject === 'provider phone')?.message).toMatch(/^acme /)
  expect(await runCommand('policy', ['explain'], env)).toMatchObject({ code: 0 })

  writeFileSync(env.POSTERN_CONFIG, stringify({ ...policy, plugins: [plugin, './later.js'] }))
  writeFileSync(join(folder, 'later.js'), 'export default { name: "later", router() {} }')
  worker.signal('SIGHUP')
  await eventually(() => expect(worker.output()).toMatch(/"needRestart":\["plugins"\]/))
  expect([await api.terminate(), await worker.terminate()]).toEqual([0, 0])
})

test.each([
  [
    'throws at import',
    'throw new Error("no licence")',
    /plugin \.\/a\.js: cannot be loaded: no licence/,
  ],
  [
    'ends the process at import',
    'process.exit(0)',
    /plugin \.\/a\.js: had not started yet when the process ended/,
  ],
  [
    'ends the process when it is made',
    'export default async () => { await null; process.exit(0) }',
    /plugin \.\/a\.js: had not started yet when the process ended/,
  ],
  [
    'takes a name of ours',
    `export default { name: "a", providerKinds: { smtp: 7 } }`,
    /plugin a: providerKinds\.smtp: is not a provider kind/,
  ],
])(
  'a plugin that %s stops API, worker, doctor and policy, with its name and without a stack',
  async (_, text, told) => {
    const { env } = settings(
      { plugins: ['./a.js'] },
      { 'a.js': text, 'package.json': '{"type":"module"}' },
    )
    for (const [command, args] of [
      ['api'],
      ['worker'],
      ['doctor'],
      ['policy', 'explain'],
    ] as const) {
      const { code, stdout, stderr } = await runCommand(command, args ? [args] : [], env)
      expect(code, command).toBe(1)
      expect(`${stdout}${stderr}`, command).toMatch(told)
      expect(`${stdout}${stderr}`, command).not.toMatch(/\n {4}at /)
    }
  },
)

test('a router that cannot be made stops the API, and no worker', async () => {
  const text = 'export default { name: "doors", router() { throw new Error("no port is free") } }'
  const { env } = settings({ plugins: ['./a.mjs'] }, { 'a.mjs': text })
  const { code, stderr } = await runCommand('api', [], { ...env, PORT: '0', ADMIN_PORT: '0' })
  expect([code, stderr.trim()]).toEqual([1, 'Postern cannot start: plugin doors: no port is free'])
  const worker = await startProcess('worker', { env })
  expect(await worker.terminate()).toBe(0)
})

test('a fault of a plugin outside its handlers ends the process in order, and the log names the plugin', async () => {
  const files = {
    'a.mjs': `export default { name: 'doors', providerKinds: {} }
setTimeout(() => { throw new Error('the lock is broken') }, 1)`,
    'b.mjs': `export default { name: 'quiet', providerKinds: {} }`,
  }
  const { env } = settings({ plugins: ['./b.mjs', './a.mjs'] }, files)
  const { code, stdout } = await runCommand('worker', [], { ...env, ADMIN_PORT: '0' })
  const fatal = stdout.split('\n').find((line) => line.includes('the lock is broken'))
  expect(JSON.parse(fatal ?? '{}')).toMatchObject({ plugin: './a.mjs' })
  expect(code).toBe(1)
})
