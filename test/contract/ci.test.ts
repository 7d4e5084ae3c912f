/**
 * `.ci/run` itself, and its counting. A check that can't fail checks nothing, so each is broken here once. Programs
 * on the PATH replace npm, node, git and curl. All of them succeed at once, except for the one that the test breaks.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { repositoryRoot } from '../tools/source-files.ts'

const passedTest = { status: 'passed' }
const good = { status: 'passed', assertionResults: [passedTest, passedTest] }
const passedRun = { numPassedTests: 2, numFailedTests: 0, testResults: [good] }

/** FAIL: the command that fails. RESULTS: the results of the tests. */
const programs = {
  npm: `
case "$*" in
  test | 'run test:long') [ -z "$RESULTS" ] || echo "$RESULTS" >"$TEST_RESULTS" ;;
  'run demo') [ "$FAIL" = 'npm run demo' ] || exec "$REAL_NODE" -e "$DEMO" ;;
esac`,
  node: `
case "$*" in
  -e*) exit 0 ;;
  .ci/try-readme.mjs*) [ "$FAIL" = readme ] || echo 'ok: README: one command' ;;
  .ci/*) exec "$REAL_NODE" "$@" ;;
esac`,
  git: `[ "$FAIL" != made ] || echo ' M examples/plain-form/index.html'`,
  curl: `[ -e "$READY" ] || exit 1`,
}

/** Ready once its file is there, and ended by a signal, as the demo is. */
const demo = `
const { rmSync, writeFileSync } = require('node:fs')
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => process.exit(rmSync(process.env.READY)))
setTimeout(() => {}, 60_000)
writeFileSync(process.env.READY, '')
`

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(inject('runFolder'), 'ci-'))
  for (const [name, body] of Object.entries(programs)) {
    const text = `#!/bin/sh\n${body}\n[ "${name} $*" != "$FAIL" ]\n`
    writeFileSync(join(folder, name), text, { mode: 0o755 })
  }
})

interface Ending {
  readonly code: number
  readonly lastLine: string | undefined
  readonly notOk: string[]
}

function runCi({ fail = '', results = JSON.stringify(passedRun) }): Promise<Ending> {
  const env = {
    PATH: `${folder}:${process.env.PATH}`,
    REAL_NODE: process.execPath,
    FAIL: fail,
    RESULTS: results,
    DEMO: demo,
    READY: join(mkdtempSync(join(folder, 'run-')), 'ready'),
  }
  return new Promise((done) => {
    execFile(join(repositoryRoot, '.ci/run'), { env, timeout: 100_000 }, (error, stdout) => {
      done({
        code: error ? Number(error.code ?? -1) : 0,
        lastLine: stdout.trimEnd().split('\n').at(-1),
        notOk: [...stdout.matchAll(/^NOT OK: (.*)$/gm)].map(([, name]) => name as string),
      })
    })
  })
}

describe.concurrent('.ci/run', () => {
  test('nothing failed → exit code 0', async () => {
    const ending = await runCi({})
    expect(ending).toMatchObject({ code: 0, notOk: [] })
    expect(ending.lastLine).toMatch(/^[1-9]\d* passed, 0 failed$/)
  })

  test.each([
    'npm ci',
    'npm test',
    'npm run test:long',
    'npm run types',
    'npm run lint',
    'npm run docs',
  ])('%s fails → exit code 1, and the last line counts it', async (fail) => {
    const ending = await runCi({ fail })
    expect(ending).toMatchObject({ code: 1, notOk: [expect.stringContaining(fail)] })
    expect(ending.lastLine).toMatch(/^\d+ passed, 1 failed$/)
  })

  test('the demo does not start, or a command of the README answers otherwise → exit code 1', async () => {
    const [demo, readme] = await Promise.all([
      runCi({ fail: 'npm run demo' }),
      runCi({ fail: 'node .ci/try-readme.mjs README.md http://localhost:3000' }),
    ])
    expect(demo).toMatchObject({ code: 1, notOk: ['npm run demo becomes ready'] })
    expect(readme).toMatchObject({ code: 1, notOk: ['the commands of the README'] })
  })

  test('a page has the hash of another code field than this one → exit code 1', async () => {
    const ending = await runCi({ fail: 'made' })
    expect(ending).toMatchObject({
      code: 1,
      notOk: ['examples/plain-form has the hash of the code field'],
    })
  })

  test.each([
    ['a test failed', { ...passedRun, numFailedTests: 1 }, 2],
    [
      'a file failed to load',
      { ...passedRun, testResults: [good, { status: 'failed', assertionResults: [] }] },
      2,
    ],
    ['no test ran', { numPassedTests: 0, numFailedTests: 0, testResults: [] }, 2],
    ['the reporter wrote nothing', undefined, 2],
  ])('the runner ends with 0 and %s → exit code 1', async (_, results, failures) => {
    const ending = await runCi({ results: results ? JSON.stringify(results) : '' })
    expect(ending.code).toBe(1)
    expect(ending.lastLine).toMatch(new RegExp(`^\\d+ passed, ${failures} failed$`))
  })
})

describe('.ci/try-readme.mjs', () => {
  async function tryReadme(readme: string): Promise<string> {
    const file = join(mkdtempSync(join(folder, 'readme-')), 'README.md')
    writeFileSync(file, readme)
    const args = [join(repositoryRoot, '.ci/try-readme.mjs'), file, 'http://localhost:1']
    const { stdout } = await promisify(execFile)(process.execPath, args)
    return stdout
  }
  const section = (command: string, answer: string) =>
    `## Try it\n\n\`\`\`sh\n${command}\n\`\`\`\n\`\`\`json\n${answer}\n\`\`\`\n`
  const printed = `echo '{"verified":true,"at":1}'`

  test('the answer has the members, types and booleans that are shown → ok', async () => {
    expect(await tryReadme(section(printed, '{"verified":true,"at":2}'))).toContain('ok: README')
  })

  test.each([
    ['another boolean', section(printed, '{"verified":false,"at":2}')],
    ['another type', section(printed, '{"verified":true,"at":"2"}')],
    ['a member that is not there', section(printed, '{"verified":true,"at":2,"to":"x"}')],
    ['a member that is not shown', section(printed, '{"verified":true}')],
    ['no JSON', section('echo', '{"verified":true}')],
    ['a command that fails', '## Try it\n\n```sh\nfalse\n```\n'],
    ['no command', '## Try that\n\n```sh\ntrue\n```\n'],
  ])('%s → exit code 1, and NOT OK', async (_, readme) => {
    await expect(tryReadme(readme)).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringContaining('NOT OK: '),
    })
  })
})
