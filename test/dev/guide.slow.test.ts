/**
 * The demo of a checkout with one page: its guide is built while the demo runs, and again when the page has changed.
 */
import { execFile } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'

const checkout = mkdtempSync(join(inject('runFolder'), 'checkout-'))
const copied = [
  ...['src', 'site', 'lua', 'templates', 'web', 'prisma'],
  ...['package.json', 'package-lock.json', 'postern.yaml', '.env.example'],
]
for (const name of copied) {
  cpSync(join(repositoryRoot, name), join(checkout, name), {
    recursive: true,
    filter: (path) => !/site\/(dist|\.vitepress\/\.work)/.test(path),
  })
}
symlinkSync(join(repositoryRoot, 'node_modules'), join(checkout, 'node_modules'))
mkdirSync(join(checkout, 'docs'))
const writePage = (text: string) => writeFileSync(join(checkout, 'docs/README.md'), text)

/** The build that a later demo would start, without its low priority. */
async function build(): Promise<{ failed: boolean; atMs: number }> {
  const args = [join(checkout, 'site/build.ts'), '--if-changed']
  const failed = await promisify(execFile)(process.execPath, args, { cwd: checkout }).then(
    () => false,
    () => true,
  )
  return { failed, atMs: statSync(join(checkout, 'site/dist/made-of.txt')).mtimeMs }
}

test('the demo builds its guide; when a page changes it is built anew and shown without a restart, and a page that cannot be built changes nothing', {
  timeout: 600_000,
}, async () => {
  writePage('# Good morning')
  const demo = await startProcess('demo', {
    checkout,
    env: {
      REDIS_URL: (await testRedis()).url,
      DATABASE_URL: (await testDatabase()).url,
      POSTERN_DATA: join(checkout, '.postern'),
    },
    withinMs: 60_000,
  })
  const guide = async () => {
    const answer = await fetch(`${demo.url}/docs/guide/`)
    return `${answer.status} ${await answer.text()}`
  }
  expect(await guide()).toMatch(/^503 .*being built/s)
  // The build runs when no other program needs a core, and other tests need them.
  const whenIdle = { withinMs: 400_000, everyMs: 200 }
  await eventually(async () => expect(await guide()).toMatch(/^200 .*Good morning/s), whenIdle)

  // The folder of a build that was killed. No process has this number.
  mkdirSync(join(checkout, 'site/.vitepress/.work-4194305'))
  const again = await build()
  writePage('# Good evening')
  const anew = await build()
  expect([again.failed, anew.failed]).toEqual([false, false])
  expect(anew.atMs).toBeGreaterThan(again.atMs)
  expect(await build()).toEqual(anew)
  expect(await guide()).toMatch(/^200 .*Good evening/s)

  // Also in the words that only GitHub shows.
  writePage('# Good night\n\n[to a page that is not there](nothing.md)')
  expect(await build()).toEqual({ ...anew, failed: true })
  expect(await guide()).toMatch(/^200 .*Good evening/s)
  expect(readdirSync(join(checkout, 'site/.vitepress'))).toEqual(['config.ts', 'theme'])
  expect(await demo.terminate()).toBe(0)
})
