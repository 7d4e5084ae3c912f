/**
 * Postern inside somebody else's Express app, as the package gives it: packed, installed with npm into a project that is
 * not ours, and used there as examples/embedded does, which docs/embedding.md shows.
 */
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { startServer } from '../examples/run-example.ts'
import { testDatabase } from '../tools/database.ts'
import { environmentWithNode } from '../tools/node-versions.ts'
import { testRedis } from '../tools/redis.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'

const run = promisify(execFile)
const key = 'psk_embedded_of_a_test_and_long_enough'

const typedPlugin = `
import { Router } from 'express'
import { createPostern, type Plugin, type ProviderKind } from 'postern'
import { z } from 'zod'

const acme: ProviderKind<{ code: string }> = {
  kind: 'acme',
  channels: ['sms'],
  settings: z.strictObject({ code: z.string() }),
  create: (name, { code }, { concurrency }) => ({
    name,
    kind: 'acme',
    channels: ['sms'],
    slots: concurrency,
    send: async (message, signal) =>
      signal.aborted ? { kind: 'unavailable', detail: code } : { kind: 'accepted', messageId: message.noticeId },
    async close() {},
  }),
}
const asked = { app: 'web', channel: 'sms', to: '+8613800138000' } as const
const plugin: Plugin = {
  name: 'acme',
  router: (postern) => Router().get('/send', async (_, response) => void response.json(await postern.sendCaptcha(asked))),
}
const postern = await createPostern({ providerKinds: { acme }, plugins: [plugin, async () => ({ ...plugin, name: 'other' })] })
const sent = await postern.sendCaptcha(asked)
if (sent.outcome === 'accepted') sent.id.trim()
if (sent.outcome === 'limited') sent.retryAfterMs.toFixed()
if (sent.outcome === 'invalid_request') sent.errors[0]?.path.trim()
const checked = await postern.checkCaptcha({ ...asked, code: '1234' })
if (checked.outcome === 'passed') checked.pass.trim()
`

describe('postern from a packed tarball, in a project outside the repository', () => {
  let project: string
  let env: Record<string, string>

  beforeAll(async () => {
    project = await mkdtemp(join(inject('runFolder'), 'host-'))
    await run('npm', ['run', 'prepack'], { cwd: repositoryRoot })
    const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', project]
    const { stdout } = await run('npm', pack, { cwd: repositoryRoot })
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
    await writeFile(join(project, 'package.json'), '{"type":"module"}')
    const ours = JSON.parse(await readFile(join(repositoryRoot, 'package.json'), 'utf8'))
    const versions = { ...ours.dependencies, ...ours.devDependencies }
    const typescript = `typescript@${ours.devDependencies.typescript}`
    const beside = ['express', '@types/express', '@types/node'].map(
      (name) => `${name}@${versions[name]}`,
    )
    const install = ['install', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund']
    await run('npm', [...install, `./${filename}`, ...beside, typescript], { cwd: project })
    env = {
      DATABASE_URL: (await testDatabase()).url,
      SECRET: 'a secret of at least thirty-two bytes',
      BOOTSTRAP_SECRET_KEY: key,
      LOG_LEVEL: 'silent',
    }
    const policy = await readFile(join(repositoryRoot, 'postern.yaml'), 'utf8')
    const templates = join(project, 'node_modules/postern/templates')
    await copyFile(join(repositoryRoot, 'examples/embedded/app.mjs'), join(project, 'app.mjs'))
    await writeFile(join(project, 'postern.yaml'), policy.replace('./templates', templates))
  }, 300_000)

  test.each([
    ['Node of the processes', undefined],
    ['Node 22', 22],
  ])(
    "examples/embedded, %s: a send is accepted under the path of the host and carried, other paths are the host's, and it ends by itself",
    async (_, major) => {
      const node = major ? await environmentWithNode(major) : {}
      const app = await startServer(
        'app.mjs',
        async () => ({ ...env, REDIS_URL: (await testRedis()).url, ...node }),
        project,
      )
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const sent = await fetch(`${app.origin}/otp/v1/captchas`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ channel: 'sms', to: '+8613800138000' }),
      })
      expect(sent.status).toBe(202)
      const location = sent.headers.get('location') ?? ''
      expect(location).toMatch(/^\/otp\/v1\/notices\//)
      await eventually(async () => {
        const notice = await fetch(`${app.origin}${location}`, { headers })
        expect(await notice.json()).toMatchObject({ state: 'sent' })
      })
      const elsewhere = await fetch(`${app.origin}/otp/elsewhere`)
      expect(elsewhere.status).toBe(404)
      expect(await elsewhere.text()).toContain('Cannot GET')
      expect(await app.terminate()).toBe(0)
    },
    120_000,
  )

  test('Node 20: an import ends with one sentence that names both versions', async () => {
    const options = { cwd: project, env: await environmentWithNode(20) }
    const importing = run('node', ['--input-type=module', '-e', "import 'postern'"], options)
    const { stderr } = await importing.then(
      () => ({ stderr: 'nothing: it was imported' }),
      (error: { stderr: string }) => error,
    )
    expect(stderr).toMatch(
      /^Error: postern needs Node 22 or newer .*, and this is Node 20\.\d+\.\d+\. /m,
    )
  }, 120_000)

  test('TypeScript: the same lines, a provider kind, a plugin and calls in process are checked by the types of the package', async () => {
    const flags = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--types',
      'node',
    ]
    await copyFile(join(project, 'app.mjs'), join(project, 'app.ts'))
    await writeFile(join(project, 'plugin.ts'), typedPlugin)
    const files = ['app.ts', 'plugin.ts']
    const { stdout } = await run('npx', ['tsc', ...flags, ...files], { cwd: project })
    expect(stdout).toBe('')
    await writeFile(
      join(project, 'wrong.ts'),
      "import { createPostern } from 'postern'\nawait createPostern({ policy: 7 })\n",
    )
    await expect(run('npx', ['tsc', ...flags, 'wrong.ts'], { cwd: project })).rejects.toMatchObject(
      { code: expect.any(Number) },
    )
  }, 120_000)
})
