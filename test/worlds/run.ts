/**
 * The rooms in other worlds, one world after the other:
 *
 *     npm run test:worlds                          every world of worlds.ts, and before it the story in each
 *     npm run test:worlds -- shanghai serializable these worlds only
 *     npm run test:worlds -- shanghai -- test/http these tests only
 *
 * Prints a table, and the failed tests of each world. The suite runs only the story, in several worlds at once.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { allAtOnce, findWorld, runsRooms, type World, whyMissing, worlds } from './worlds.ts'

/** Documents and pages are the same in every world. */
const roomsOfServers = [
  'access',
  'captcha',
  'compat',
  'console',
  'delivery',
  'flow',
  'http',
  'limiter',
  'main',
  'notice',
  'rules',
  'storage',
  'support',
  'upkeep',
]
/** Pure code, for which only zones, languages and versions of Node differ. */
const roomsOfProcesses = ['base', 'config', 'crypto', 'providers', 'recipient']

const given = process.argv.slice(2)
const end = given.indexOf('--')
const names = end < 0 ? given : given.slice(0, end)
const tests = end < 0 ? [] : given.slice(end + 1)
const chosen = names.length > 0 ? names.map(findWorld) : [allAtOnce, ...worlds]

const folder = mkdtempSync(join(tmpdir(), 'postern-worlds-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const rows: string[] = []
let isRed = false

const storyNames = chosen.map(({ name }) => `story in the world ${name}( |$)`).join('|')
await report('the story', ['--project', 'slow', 'test/worlds', '-t', storyNames], { STORY: 'each' })
for (const world of chosen.filter(runsRooms)) {
  const reason = whyMissing(world)
  if (reason) rows.push(`${world.name}: skipped, ${reason}`)
  else await report(world.name, ['--project', 'rooms', ...testsFor(world)], environmentOf(world))
}
process.stdout.write(`\n${rows.join('\n')}\n`)
process.exitCode = isRed ? 1 : 0

function testsFor(world: World): readonly string[] {
  if (tests.length > 0) return tests
  const rooms = [...roomsOfServers, ...(world.env || world.node ? roomsOfProcesses : [])]
  return rooms.map((room) => `test/${room}/`)
}

/** Variables of the tests in this world, and of all processes that they start. */
function environmentOf(world: World): Record<string, string> {
  const env = { WORLD: world.name, ...world.env }
  return world.node ? { ...env, PATH: pathWithNode(world.node) } : env
}

function pathWithNode(major: number): string {
  const quietly = [
    '--no-save',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    '--loglevel',
    'error',
  ]
  const { status } = spawnSync('npm', ['install', ...quietly, `node@${major}`], {
    cwd: folder,
    stdio: 'inherit',
    env: { ...process.env, npm_config_prefix: '' },
  })
  if (status !== 0) throw new Error(`npm could not install Node ${major}`)
  return [join(folder, 'node_modules/node/bin'), process.env.PATH].join(delimiter)
}

async function report(
  name: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<void> {
  process.stdout.write(`\n=== ${name}\n`)
  const outputFile = join(folder, 'results.json')
  rmSync(outputFile, { force: true })
  const started = performance.now()
  const command = ['node_modules/vitest/vitest.mjs', 'run', ...args]
  const child = spawn('node', command, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env, TEST_RESULTS: outputFile },
  })
  const [code] = await once(child, 'close')
  const seconds = Math.round((performance.now() - started) / 1_000)
  const { numPassedTests, failed } = resultsIn(outputFile)
  for (const title of failed) process.stdout.write(`failed: ${title}\n`)
  if (code !== 0) isRed = true
  const ending = code !== 0 && failed.length === 0 ? ', ended with an error outside the tests' : ''
  const row = `${name}: ${numPassedTests} passed, ${failed.length} failed, ${seconds} s${ending}`
  process.stdout.write(`${row}\n`)
  rows.push(row)
}

function resultsIn(file: string): { numPassedTests: number; failed: string[] } {
  try {
    const results = JSON.parse(readFileSync(file, 'utf8'))
    type Result = { status: string; fullName: string; failureMessages?: string[] }
    type Suite = { name: string; assertionResults: Result[] }
    const failed = (results.testResults as Suite[]).flatMap(({ name, assertionResults }) =>
      assertionResults
        .filter(({ status }) => status === 'failed')
        .map(({ fullName, failureMessages = [] }) => {
          const [reason = ''] = failureMessages
          return `${name.replace(/^.*\/test\//, 'test/')}: ${fullName}\n  ${reason.slice(0, 1_000)}`
        }),
    )
    return { numPassedTests: results.numPassedTests, failed }
  } catch {
    return { numPassedTests: 0, failed: [] }
  }
}
