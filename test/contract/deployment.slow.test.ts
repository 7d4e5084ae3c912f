/**
 * README, "Deployment", as a new user follows it: each of its lines unchanged, in a clone of the committed files, in
 * a folder whose parents have no packages, with the oldest promised Node.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, inject, test } from 'vitest'
import { findFreePort } from '../../src/dev/server-process.ts'
import { testDatabase } from '../tools/database.ts'
import { fencesOf } from '../tools/markdown.ts'
import { environmentWithNode } from '../tools/node-versions.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'

const run = promisify(execFile)

/** The commands of the page's block that installs Postern, without comments. */
function deploymentOf(page: string): string[] {
  const block = fencesOf(page).find(({ text }) => text.includes('--omit=dev'))
  return (block?.text ?? '')
    .split('\n')
    .map((line) => line.replace(/\s+#.*$/, ''))
    .filter(Boolean)
}

const lines = deploymentOf('README.md')
let clone: string
let env: Record<string, string>

beforeAll(async () => {
  clone = join(await mkdtemp(join(inject('runFolder'), 'clone-')), 'postern')
  // A checkout may belong to another user than the user of the tests.
  const config = join(dirname(clone), 'gitconfig')
  await writeFile(config, '[safe]\n  directory = *\n')
  const git = { env: { ...process.env, GIT_CONFIG_GLOBAL: config } }
  await run('git', ['clone', '--quiet', repositoryRoot, clone], git)
  env = { ...(await environmentWithNode(20)), HOST: '127.0.0.1' }
}, 180_000)

/** Runs one line of the README in the clone. Returns its output. Throws with the whole output if the line fails. */
async function shell(line: string): Promise<string> {
  try {
    const options = { cwd: clone, env, timeout: 300_000 }
    return (await run('bash', ['-c', line], options)).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${line} failed:\n${stdout}${stderr}`, { cause: error })
  }
}

test('no folder above the clone holds packages, and its Node is the oldest that package.json promises', async () => {
  for (let folder = dirname(clone); folder !== dirname(folder); folder = dirname(folder)) {
    expect(existsSync(join(folder, 'node_modules')), folder).toBe(false)
  }
  const { engines } = JSON.parse(await readFile(join(clone, 'package.json'), 'utf8'))
  expect(`>=${(await shell('node --version')).slice(1, 3)}`).toBe(engines.node)
})

test('I36: from `npm ci` to a code that is sent: every line does what the README describes', async () => {
  expect(lines).toHaveLength(7)
  const [install = '', copy = '', migrate = '', doctor = '', keys = '', api = '', worker = ''] =
    lines
  await shell(install)
  const kilobytes = Number((await shell('du -sk node_modules')).split('\t')[0])
  expect(kilobytes).toBeLessThan(420_000)

  await shell(copy)
  const [{ url: database, pool }, { url: redis }] = [await testDatabase(), await testRedis()]
  await pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
  const settings = await readFile(join(clone, '.env'), 'utf8')
  await writeFile(
    join(clone, '.env'),
    settings
      .replace(/^DATABASE_URL=.*/m, `DATABASE_URL=${database}`)
      .replace(/^REDIS_URL=.*/m, `REDIS_URL=${redis}`)
      .replace(/^SECRET=$/m, `SECRET=${'a secret of a clone '.repeat(2)}`),
  )
  await shell(migrate)
  // The servers of the tests are fast and not durable, and the policy file has routes to the sandbox alone.
  const errors = (await shell(`${doctor} || true`)).matchAll(/^ERROR +(.*)$/gm)
  expect([...errors].map(([, error]) => error)).toEqual([
    expect.stringContaining('fsync is off'),
    expect.stringContaining('sms uses a sandbox'),
    expect.stringContaining('email uses a sandbox'),
  ])
  const key = /^key: +(\S+)$/m.exec(await shell(keys))?.[1]

  const port = await findFreePort()
  await start(`PORT=${port} ${api}`)
  expect(worker, 'the API has the default one').toMatch(/^ADMIN_PORT=(?!9100 )\d+ /)
  await start(worker)
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const sent = await fetch(`http://127.0.0.1:${port}/v1/captchas`, {
    method: 'POST',
    headers,
    body: '{"channel":"sms","to":"+8613800138000","scene":"signup"}',
  })
  expect(sent.status).toBe(202)
  const { id } = (await sent.json()) as { id: string }
  await eventually(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/notices/${id}`, { headers })
    expect(await answer.json()).toMatchObject({ state: 'sent' })
  })
}, 400_000)

/** Runs a line that does not end, until it is ready. It ends after the test. Its admin port is a free one. */
async function start(line: string): Promise<void> {
  const adminPort = await findFreePort()
  const command = `ADMIN_PORT=${adminPort} ${line.replace(/ADMIN_PORT=\d+ /, '')}`
  const child = spawn('bash', ['-c', command], { cwd: clone, env, detached: true })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += text))
  releaseLater(() => end(child))
  await eventually(
    async () => {
      if (child.exitCode !== null) throw new Error(`${line} ended: ${output}`)
      const { status } = await fetch(`http://127.0.0.1:${adminPort}/readyz`)
      expect(status, output).toBe(200)
    },
    { withinMs: 60_000 },
  )
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  // Sent to the whole group, like Ctrl-C in a terminal.
  process.kill(-(child.pid as number), 'SIGINT')
  await closed
}

test.each(['docs/guides/go-live.md', 'docs/zh/guides/go-live.md'])(
  '%s: the lines from a checkout are the lines of the README, in the same order',
  (page) => {
    expect(deploymentOf(page)).toEqual(lines)
  },
)
