/**
 * Postern inside somebody else's Express app, as the package gives it: packed, installed with npm into a project that is
 * not ours, and used there in fewer than 20 lines.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { fencesOf } from '../tools/markdown.ts'
import { environmentWithNode } from '../tools/node-versions.ts'
import { testRedis } from '../tools/redis.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const run = promisify(execFile)

const host = `
import express from 'express'
import { createPostern } from 'postern'

const postern = await createPostern({ policy: './postern.yaml' })
postern.startWorker()
const app = express()
app.use('/otp', postern.router)
app.use((request, response) => response.status(404).send('not the host either'))
const server = app.listen(0, '127.0.0.1', async () => {
  const url = \`http://127.0.0.1:\${server.address().port}\`
  const headers = { authorization: \`Bearer \${process.env.BOOTSTRAP_SECRET_KEY}\`, 'content-type': 'application/json' }
  const body = JSON.stringify({ channel: 'sms', to: '+8613800138000' })
  const sent = await fetch(\`\${url}/otp/v1/captchas\`, { method: 'POST', headers, body })
  console.log(sent.status, sent.headers.get('location').startsWith('/otp/v1/notices/'))
  console.log((await fetch(\`\${url}/otp/elsewhere\`)).status)
  server.close(() => postern.close())
})
`

describe('postern from a packed tarball, in a project outside the repository', () => {
  let project: string
  let env: NodeJS.ProcessEnv

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
      ...process.env,
      DATABASE_URL: (await testDatabase()).url,
      SECRET: 'a secret of at least thirty-two bytes',
      BOOTSTRAP_SECRET_KEY: 'psk_embedded_of_a_test_and_long_enough',
      LOG_LEVEL: 'silent',
    }
    const policy = await readFile(join(repositoryRoot, 'postern.yaml'), 'utf8')
    const templates = join(project, 'node_modules/postern/templates')
    await writeFile(join(project, 'postern.yaml'), policy.replace('./templates', templates))
  }, 300_000)

  const javascript =
    "a send is accepted under the path of the host, other paths are the host's, and it ends by itself"
  test.each([
    ['Node of the processes', undefined],
    ['Node 22', 22],
  ])(
    `JavaScript, %s: ${javascript}`,
    async (_, major) => {
      expect(host.split('\n').filter(Boolean).length).toBeLessThan(20)
      await writeFile(join(project, 'host.js'), host)
      const node = major ? await environmentWithNode(major) : {}
      const { stdout } = await run('node', ['host.js'], {
        cwd: project,
        env: { ...env, REDIS_URL: (await testRedis()).url, ...node },
        timeout: 30_000,
      })
      expect(stdout.trim().split('\n')).toEqual(['202 true', '404'])
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

  test('TypeScript: the same lines, and those of docs/embedding.md, are checked by the types of the package', async () => {
    await writeFile(
      join(project, 'host.ts'),
      host
        .replace('.port', '!.port')
        .replace('server.address()', '(server.address() as AddressInfo)')
        .replace('import express', "import type { AddressInfo } from 'node:net'\nimport express")
        .replace(".get('location')", ".get('location')!")
        .replace('!.port', '.port'),
    )
    const flags = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--types',
      'node',
    ]
    const [page] = fencesOf('docs/embedding.md')
    await writeFile(join(project, 'page.ts'), page?.text ?? 'no code')
    const { stdout } = await run('npx', ['tsc', ...flags, 'host.ts', 'page.ts'], { cwd: project })
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
