/**
 * The package as users get it, in the image and from npm. The lines of the Dockerfile pack it, and npm installs it
 * into a foreign project. There its program `postern` runs the service and the demo, and an Express app imports it as
 * in examples/embedded.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import {
  copyFile,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { isRunning } from '../dev/start-demo.ts'
import { startServer } from '../examples/run-example.ts'
import { testDatabase } from '../tools/database.ts'
import { buildStages, type Stage } from '../tools/dockerfile.ts'
import { fencesOf } from '../tools/markdown.ts'
import { environmentWithNode, fromCache } from '../tools/node-versions.ts'
import { childrenOf } from '../tools/own-servers.ts'
import { clientOf } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
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

const typedPage = `
import type { FieldEvents, Texts } from 'postern/browser'

const field = document.querySelector('postern-code')!
const texts: Partial<Texts> = { smsLabel: 'Handynummer' }
field.texts = texts
field.addEventListener('passed', ({ detail: { pass, channel, to } }) => console.log(pass?.trim(), channel, to.trim()))
field.addEventListener('refused', ({ detail: { problem } }) => {
  if (problem.code === 'limited') problem.retryAfterMs.toFixed()
})
field.addEventListener('challenge', ({ detail }: FieldEvents['challenge']) => detail.container.append(detail.siteKey))
field.addEventListener('input', (event) => event.preventDefault())
// @ts-expect-error: no member of this event
field.addEventListener('sent', ({ detail }) => detail.pass)
`

let image: Stage
let project: string
let program: string
let env: Record<string, string>
/** After the first install: kilobytes of all packages except for Node, and the paths of the packages. */
let installed: { kilobytes: number; packages: string[] }

beforeAll(async () => {
  project = await mkdtemp(join(inject('runFolder'), 'host-'))
  program = join(project, 'node_modules/.bin/postern')
  const stages = await buildStages(await mkdtemp(join(inject('runFolder'), 'image-')), {
    // The Node of the base image comes first.
    PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
    HOME: process.env.HOME ?? '',
    ...fromCache,
  })
  image = stages.get('image') as Stage
  const ours = JSON.parse(await readFile(join(repositoryRoot, 'package.json'), 'utf8'))
  const tarball = join(stages.get('package')?.folder ?? '', `postern-${ours.version}.tgz`)
  await writeFile(join(project, 'package.json'), '{"type":"module"}')
  const node20 = { cwd: project, env: await environmentWithNode(20) }
  const install = ['install', '--no-audit', '--no-fund']
  await run('npm', [...install, tarball], node20)
  installed = await measure()
  const versions = { ...ours.dependencies, ...ours.devDependencies }
  const typescript = `typescript@${ours.devDependencies.typescript}`
  const beside = ['express', '@types/express', '@types/node'].map(
    (name) => `${name}@${versions[name]}`,
  )
  await run('npm', [...install, '--ignore-scripts', ...beside, typescript], node20)
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

async function measure(): Promise<typeof installed> {
  const folder = join(project, 'node_modules')
  return {
    kilobytes: (await kilobytesOf(folder)) - (await kilobytesOf(join(folder, 'node'))),
    packages: await packagesIn(project),
  }
}

async function kilobytesOf(path: string): Promise<number> {
  return Number((await run('du', ['-sk', path])).stdout.split('\t')[0])
}

/** Paths as in the lock file. */
async function packagesIn(folder: string): Promise<string[]> {
  const lock = await readFile(join(folder, 'node_modules/.package-lock.json'), 'utf8')
  return Object.keys(JSON.parse(lock).packages)
}

/** The packages in this list that only development needs. */
async function developmentPackages(paths: readonly string[]): Promise<string[]> {
  const { packages } = JSON.parse(await readFile(join(repositoryRoot, 'package-lock.json'), 'utf8'))
  return paths.filter((path) => packages[path]?.dev)
}

describe('the image', () => {
  test('it has the package and what that needs: no sources, no development package, no second Node', async () => {
    const { folder } = image
    const files = await readdir(folder, { recursive: true })
    const sources = files.filter(
      (file) => /(?<!\.d)\.ts$/.test(file) && !file.includes('node_modules'),
    )
    expect(sources).toEqual([])
    expect(existsSync(join(folder, 'node_modules/node/bin/node'))).toBe(false)
    const packages = await packagesIn(folder)
    expect(packages).toContain('node_modules/@prisma/client')
    expect(await developmentPackages(packages)).toEqual([])
    expect(await kilobytesOf(folder)).toBeLessThan(180_000)
  })

  test('its command is an API that becomes ready, on the Node of the base image, and other commands are on the PATH', async () => {
    const { folder, command } = image
    const env = {
      ...{ ...image.env, DATABASE_URL: (await testDatabase()).url },
      REDIS_URL: (await testRedis()).url,
      SECRET: 'a secret of at least thirty-two bytes',
    }
    const [program = '', ...args] = command
    const api = await startProcess('api', { command: [program, ...args], env, cwd: folder })
    const { stdout } = await run('postern', ['migrate'], { cwd: folder, env })
    expect(stdout).toContain('up to date')
    const keys = await run('postern', ['keys', '--help'], { cwd: folder, env })
    expect(keys.stdout).toMatch(/^ {2}postern keys create/m)
    expect(await api.terminate()).toBe(0)
  })
})

describe('an install of the tarball in an empty project', () => {
  test('without the Node it has at most 180 MB, and nothing that only development needs', async () => {
    for (let folder = dirname(project); folder !== dirname(folder); folder = dirname(folder))
      expect(existsSync(join(folder, 'node_modules')), folder).toBe(false)
    expect(installed.kilobytes).toBeLessThan(180_000)
    expect(installed.packages).toContain('node_modules/@prisma/client')
    expect(await developmentPackages(installed.packages)).toEqual([])
    // It would report the install to a third party.
    expect(installed.packages.filter((path) => path.includes('scarf'))).toEqual([])
  })
})

describe('its program', () => {
  /** Exit code and output of `postern` in the project. */
  async function postern(args: string[], more: Record<string, string> = {}) {
    const options = { cwd: project, env: { ...(await environmentWithNode(20)), ...more } }
    return run(program, args, options).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
    )
  }

  test('npx finds it; --help names every command; an unknown command ends with 2, a wrong setting with 1', async () => {
    const node20 = { cwd: project, env: await environmentWithNode(20) }
    const { stdout } = await run('npx', ['postern', '--version'], node20)
    const { version } = JSON.parse(await readFile(join(repositoryRoot, 'package.json'), 'utf8'))
    expect(stdout.trim()).toBe(version)
    const help = await postern(['--help'])
    expect(help).toMatchObject({ code: 0, stderr: '' })
    const named = [...help.stdout.matchAll(/^ {2}(\w+) /gm)].map(([, name]) => name)
    expect(named).toEqual(['api', 'worker', 'migrate', 'keys', 'policy', 'doctor', 'demo'])
    expect(await postern(['demo', '--help'])).toEqual(help)
    const unknown = await postern(['constructor'])
    expect(unknown).toMatchObject({ code: 2, stdout: '' })
    expect(unknown.stderr).toBe(`postern has no command "constructor".\n\n${help.stdout}`)
    expect(await postern([])).toEqual({ code: 2, stdout: '', stderr: help.stdout })
    const api = await postern(['api'])
    expect(api).toMatchObject({ code: 1, stdout: '' })
    expect(api.stderr).toContain('DATABASE_URL')
    const unreachable = await postern(['keys', 'list'], {
      DATABASE_URL: 'postgresql://127.0.0.1:9/x',
    })
    expect(unreachable).toMatchObject({ code: 1, stderr: expect.stringMatching(/^Failed: /) })
    const keys = await postern(['keys', '--help'])
    expect(keys).toMatchObject({ code: 0, stderr: '' })
    expect(keys.stdout).toMatch(/^ {2}npx postern keys create \[--name NAME\]/m)
  })

  test('I36: the lines of "From the package", from the copies to a key, run in their order in the folder of the install', async () => {
    const page = fencesOf('docs/guides/go-live.md')
    const block = page.find(({ text }) => text.includes('npm i ./postern-'))?.text ?? ''
    const lines = block
      .split('\n')
      .map((line) => line.replace(/\s+#.*$/, ''))
      .filter((line) => /^(cp|npx postern (migrate|doctor|keys)) ?/.test(line))
    expect(lines).toHaveLength(6)
    // Another folder: the processes of other tests would read the files.
    const folder = await mkdtemp(join(inject('runFolder'), 'installed-'))
    await symlink(join(project, 'node_modules'), join(folder, 'node_modules'))
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    const [{ url: database, pool }, { url: redis }] = [await testDatabase(), await testRedis()]
    await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    const options = { cwd: folder, env: await environmentWithNode(20) }
    // The context of the image lacks this file. The package of a checkout has it.
    const { files } = JSON.parse(await readFile(join(repositoryRoot, 'package.json'), 'utf8'))
    expect(files).toContain('.env.example')
    const example = join(project, 'node_modules/postern/.env.example')
    await copyFile(join(repositoryRoot, '.env.example'), example)
    for (const line of lines.filter((one) => one.startsWith('cp '))) {
      await run('bash', ['-c', line], options)
    }
    const env = await readFile(join(folder, '.env'), 'utf8')
    await writeFile(
      join(folder, '.env'),
      env
        .replace(/^DATABASE_URL=.*/m, `DATABASE_URL=${database}`)
        .replace(/^REDIS_URL=.*/m, `REDIS_URL=${redis}`)
        .replace(/^SECRET=$/m, `SECRET=${'a secret of the package '.repeat(2)}`),
    )
    const [migrate = '', doctor = '', keys = ''] = lines.slice(3)
    expect((await run('bash', ['-c', migrate], options)).stdout).toMatch(/^applied: /)
    // As the page says: the shipped file has routes to the sandbox.
    const { stdout } = await run('bash', ['-c', `${doctor} || true`], options)
    expect(stdout).toMatch(/^ERROR .*sms uses a sandbox/m)
    expect((await run('bash', ['-c', keys], options)).stdout).toMatch(/^key: +psk_/m)
  }, 60_000)

  test('an older Node without the one of the package: the reason, and what to do', async () => {
    const file = join(project, 'node_modules/postern/bin/postern.js')
    const options = { cwd: project, env: await environmentWithNode(20) }
    const starting = run('node', [file, 'migrate'], options)
    await expect(starting).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^postern needs Node 24 or newer, and this is Node 20\./),
    })
  })

  test.each([20, 22])(
    'a machine with Node %i: from an empty database to a code that is sent, all on the Node of the package; SIGTERM, SIGINT and SIGKILL reach it',
    async (major) => {
      const [{ url: database, pool }, { url: redis }] = [await testDatabase(), await testRedis()]
      await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
      const node = await environmentWithNode(major)
      const settings = {
        ...{ ...node, DATABASE_URL: database, REDIS_URL: redis },
        SECRET: 'a secret of at least thirty-two bytes',
      }
      const migrated = await postern(['migrate'], settings)
      expect(migrated).toMatchObject({ code: 0, stdout: expect.stringMatching(/^applied: /) })
      const doctor = await postern(['doctor'], settings)
      expect(doctor.stdout).toMatch(/^ok +settings +Node 24\./m)
      // A sandbox is an error, and the advice is for a user who has the package.
      expect(doctor).toMatchObject({
        code: 1,
        stdout: expect.stringContaining('npx postern keys create'),
      })
      const created = await postern(['keys', 'create', '--name', 'web'], settings)
      const token = /^key: +(\S+)$/m.exec(created.stdout)?.[1] ?? ''

      // As systemd starts them.
      const start = async (name: 'api' | 'worker') => {
        const unit = await readFile(
          join(repositoryRoot, `deploy/systemd/postern-${name}@.service`),
          'utf8',
        )
        const setting = (key: string) =>
          new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1]?.replace('/opt/postern', project) ?? ''
        const [program = '', ...args] = setting('ExecStart').split(' ')
        const cwd = setting('WorkingDirectory')
        return startProcess(name, { command: [program, ...args], cwd, env: settings })
      }
      const [api, worker] = await Promise.all([start('api'), start('worker')])
      for (const { pid } of [api, worker])
        expect(await readlink(`/proc/${pid}/exe`)).toBe(join(project, 'node_modules/node/bin/node'))
      const { post, get } = clientOf(api.url, token)
      const sent = await post('/v1/captchas', { channel: 'sms', to: '+8613800138000' })
      expect(sent.status).toBe(202)
      await eventually(async () => {
        const { body } = await get(`/v1/notices/${sent.body.id}`)
        expect(body).toMatchObject({ state: 'sent' })
      })
      expect(await api.terminate()).toBe(0)
      worker.signal(major === 20 ? 'SIGINT' : 'SIGKILL')
      expect(await worker.exited).toBe(major === 20 ? 0 : 'SIGKILL')
    },
    120_000,
  )

  test('the demo starts in an empty folder with a PostgreSQL that it installs there, sends a code, and leaves no process', async () => {
    const folder = await mkdtemp(join(project, 'demo-'))
    const node20 = await environmentWithNode(20)
    const demo = await startProcess('demo', {
      command: [program, 'demo'],
      cwd: folder,
      env: node20,
      isReady: (started) => started.output().includes('Ctrl-C stops'),
    })
    expect(demo.output()).toContain(`into ${folder}/.postern/postgres/programs, once`)
    expect(demo.output()).toMatch(/^ +npx postern keys create/m)
    const { post, messages } = clientOf(
      demo.url,
      await readFile(join(folder, '.postern/demo-key'), 'utf8'),
    )
    const page = await (await fetch(demo.url)).text()
    expect(page).toContain('<postern-code')
    for (const [, path = ''] of page.matchAll(/(?:src|href)="(\/[^"]+)"/g)) {
      const { status } = await fetch(`${demo.url}${path}`)
      expect({ path, status }).toEqual({
        path,
        status: path.startsWith('/docs/guide/') ? 404 : 200,
      })
    }
    const guide = await (await fetch(`${demo.url}/docs/guide/start`)).text()
    const command = /<code>(DATABASE_URL=.*)<\/code>/.exec(guide)?.[1] ?? 'no command'
    // The shell of a user has the .bin of no project on its PATH, but npx finds it above the folder.
    const made = await run('bash', ['-c', command], {
      cwd: folder,
      env: { ...node20, ...fromCache },
    })
    expect(made.stdout).toMatch(/^key: +ppk_/m)
    expect(guide).toContain('node_modules/postern/docs/')
    const to = '+8613800138000'
    expect((await post('/v1/captchas', { channel: 'sms', to })).status).toBe(202)
    await eventually(async () => expect(await messages()).toMatchObject([{ to }]))
    const started = childrenOf(demo.pid)
    expect(started).toHaveLength(3)
    demo.signal('SIGINT')
    expect(await demo.exited).toBe(0)
    expect(started.filter(isRunning)).toEqual([])
  }, 180_000)
})

describe('in an Express app', () => {
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

  test('TypeScript: the same lines, a provider kind, a plugin, calls in process and the events of the field are checked by the types of the package', async () => {
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
    await writeFile(join(project, 'page.ts'), typedPage)
    const files = ['app.ts', 'plugin.ts', 'page.ts']
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
