/**
 * Do the tests notice a bug? Puts one small bug after the other into a copy of the tree, runs the tests
 * of that room on it, and says which bugs they let pass:
 *
 *     npm run mutants -- captcha access        these rooms; all of them without a name
 *     npm run mutants -- captcha --only grace  those whose words contain `grace`
 *     npm run mutants -- --check               only whether every mutant is found and compiles, which a run takes for granted
 */
import { spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { startTestPostgres, startTestRedis } from '../tools/global-setup.ts'
import { makeRunFolder, removeRunFolder } from '../tools/run-folder.ts'
import type { Mutant, MutantRoom } from './mutant.ts'

const root = resolve(import.meta.dirname, '../..')
const neededPercent = 85
const runTimeoutMs = 10 * 60_000
const mutatedFolders = ['src/', 'lua/', 'prisma/']
/** The look of a mutant that broke the program instead of its meaning. */
const crash = /SyntaxError|ReferenceError|Error compiling script|Script attempted to access/

interface Placed extends Mutant {
  readonly file: string
  readonly at: number
}
type Outcome = { kind: 'noticed'; by: string } | { kind: 'lived' } | { kind: 'wrong'; why: string }

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, check: { type: 'boolean' } },
})
const roomNames = positionals.length > 0 ? positionals : listRooms()
const tree = copyTree()
process.once('exit', () => rmSync(tree, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

const sources = new Map(
  listFiles('.')
    .filter((file) => mutatedFolders.some((folder) => file.startsWith(folder)))
    .map((file) => [file, readFileSync(join(tree, file), 'utf8')]),
)
/** Shared by all runs: starting them anew for each would take longer than most tests. */
const serverEnv = options.check ? {} : await startServers()
const testFiles = listFiles('.').filter((file) => file.endsWith('.test.ts'))
const summary: string[] = []
let isGood = true
for (const name of roomNames) isGood = (await runRoom(name)) && isGood
console.log(
  ['', '| room | mutants | noticed | score |', '|---|---|---|---|', ...summary].join('\n'),
)
process.exit(isGood ? 0 : 1)

async function runRoom(name: string): Promise<boolean> {
  const { room } = (await import(`./${name}.ts`)) as { room: MutantRoom }
  console.log(`\n${name}: ${room.mutants.length} mutants`)
  const wrong: string[] = []
  const placed: Placed[] = []
  for (const mutant of room.mutants) {
    if (options.only && !mutant.breaks.includes(options.only)) continue
    const found = place(mutant)
    if (typeof found === 'string') wrong.push(`${mutant.breaks}: ${found}`)
    else placed.push(found)
    for (const path of mutant.tests ?? []) wrong.push(...unknownTest(path))
  }
  for (const path of room.tests) wrong.push(...unknownTest(path))
  if (options.check) wrong.push(...checkTypes(placed))
  const lived: Placed[] = []
  let noticed = 0
  if (!options.check) {
    const all = [...new Set([room.tests, ...placed.map((one) => one.tests ?? [])].flat())]
    let before = await runTests(all)
    // On a busy machine a test may fail that has nothing against the code.
    if (before.kind !== 'lived') before = await runTests(all)
    if (before.kind !== 'lived') {
      console.error(`  its tests do not pass without a mutant: ${JSON.stringify(before)}`)
      return false
    }
    for (const mutant of placed) {
      const outcome = await tryMutant(mutant, mutant.tests ?? room.tests)
      if (outcome.kind === 'wrong') wrong.push(`${mutant.breaks}: ${outcome.why}`)
      if (outcome.kind === 'lived') lived.push(mutant)
      if (outcome.kind === 'noticed') noticed += 1
      const word = { noticed: 'noticed', lived: 'LIVED  ', wrong: 'WRONG  ' }[outcome.kind]
      console.log(
        `  ${word} ${mutant.breaks}${outcome.kind === 'noticed' ? `  ← ${outcome.by}` : ''}`,
      )
    }
    const percent = Math.floor((100 * noticed) / Math.max(1, noticed + lived.length))
    summary.push(`| ${name} | ${noticed + lived.length} | ${noticed} | ${percent} % |`)
    for (const mutant of lived) {
      console.log(
        `  lived: ${mutant.file}: ${mutant.breaks}${mutant.mayLive ? ` (${mutant.mayLive})` : ''}`,
      )
    }
    if (percent < neededPercent) wrong.push(`score ${percent} % is below ${neededPercent} %`)
  }
  for (const line of wrong) console.error(`  ERROR ${line}`)
  return wrong.length === 0
}

function place(mutant: Mutant): Placed | string {
  const files = [...sources].filter(([, text]) => text.includes(mutant.find))
  const [file, text] = files[0] ?? []
  if (!file || text === undefined) return 'its text is no longer there'
  const at = text.indexOf(mutant.find)
  if (files.length > 1 || text.includes(mutant.find, at + 1))
    return 'its text stands more than once'
  return { ...mutant, file, at }
}

/** All that do not overlap stand in the tree together, so one run of the compiler serves many. */
function checkTypes(mutants: readonly Placed[]): string[] {
  const wrong: string[] = []
  let left = [...mutants]
  while (left.length > 0) {
    const round: Placed[] = []
    const later: Placed[] = []
    for (const mutant of left) {
      const overlaps = round.some(
        (other) =>
          other.file === mutant.file &&
          other.at < mutant.at + mutant.find.length &&
          mutant.at < other.at + other.find.length,
      )
      ;(overlaps ? later : round).push(mutant)
    }
    for (const mutant of round) {
      const path = join(tree, mutant.file)
      writeFileSync(
        path,
        readFileSync(path, 'utf8').replace(mutant.find, () => mutant.replace),
      )
    }
    const { status, stdout } = spawnSync(
      process.execPath,
      [
        'node_modules/typescript/bin/tsc',
        '--noUnusedLocals',
        'false',
        '--noUnusedParameters',
        'false',
      ],
      { cwd: tree, encoding: 'utf8' },
    )
    if (status !== 0)
      wrong.push(
        ...stdout
          .trim()
          .split('\n')
          .map((line) => `does not compile: ${line}`),
      )
    for (const { file } of round) restore(file)
    left = later
  }
  return wrong
}

async function tryMutant(mutant: Placed, tests: readonly string[]): Promise<Outcome> {
  const text = sources.get(mutant.file) as string
  writeFileSync(
    join(tree, mutant.file),
    text.replace(mutant.find, () => mutant.replace),
  )
  try {
    return await runTests(tests)
  } finally {
    restore(mutant.file)
  }
}

function restore(file: string): void {
  writeFileSync(join(tree, file), sources.get(file) as string)
}

function runTests(tests: readonly string[]): Promise<Outcome> {
  const resultsFile = join(tree, 'mutant-results.json')
  rmSync(resultsFile, { force: true })
  const run = spawn(
    process.execPath,
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--bail',
      '1',
      ...['rooms', 'slow', 'faults'].flatMap((project) => ['--project', project]),
      ...tests,
    ],
    {
      cwd: tree,
      stdio: 'ignore',
      detached: true,
      env: { ...process.env, ...serverEnv, TEST_RESULTS: resultsFile },
    },
  )
  const killRun = () => {
    try {
      process.kill(-(run.pid as number), 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  process.once('exit', killRun)
  const timer = setTimeout(killRun, runTimeoutMs)
  return new Promise((done) => {
    run.once('close', (status) => {
      clearTimeout(timer)
      process.off('exit', killRun)
      done(status === 0 ? { kind: 'lived' } : readOutcome(resultsFile))
    })
  })
}

function readOutcome(resultsFile: string): Outcome {
  let results: {
    testResults: {
      name: string
      message: string
      assertionResults: { status: string; fullName: string; failureMessages: string[] }[]
    }[]
  }
  try {
    results = JSON.parse(readFileSync(resultsFile, 'utf8'))
  } catch {
    return { kind: 'noticed', by: 'the run did not end' }
  }
  for (const file of results.testResults) {
    for (const test of file.assertionResults) {
      if (test.status !== 'failed') continue
      const said = test.failureMessages.join('\n')
      if (crash.test(said))
        return { kind: 'wrong', why: `breaks the program: ${said.slice(0, 300)}` }
      return { kind: 'noticed', by: test.fullName }
    }
  }
  const broken = results.testResults.find((file) => file.message)
  if (!broken) return { kind: 'noticed', by: 'the run as a whole' }
  if (crash.test(broken.message))
    return { kind: 'wrong', why: `breaks the program: ${broken.message}` }
  return {
    kind: 'noticed',
    by: `${broken.name.slice(tree.length + 1)}: ${broken.message.slice(0, 100)}`,
  }
}

async function startServers(): Promise<Record<string, string>> {
  const folder = makeRunFolder()
  process.once('exit', () => removeRunFolder(folder))
  const [redis, postgres] = await Promise.all([startTestRedis(folder), startTestPostgres(folder)])
  return { REDIS_URL: redis.url, DATABASE_URL: postgres.url }
}

function unknownTest(path: string): string[] {
  return testFiles.some((file) => file.startsWith(path)) ? [] : [`no test begins with ${path}`]
}

function listRooms(): string[] {
  return readdirSync(import.meta.dirname)
    .filter((file) => file !== 'run.ts' && file !== 'mutant.ts')
    .map((file) => file.slice(0, -'.ts'.length))
}

/** What Git knows or would add, and what is generated. */
function listFiles(folder: string): string[] {
  const { stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard', folder], {
    cwd: root,
    encoding: 'utf8',
  })
  return stdout.split('\n').filter(Boolean)
}

function copyTree(): string {
  const copy = mkdtempSync(join(tmpdir(), 'postern-mutants-'))
  for (const path of [...listFiles('.'), 'src/storage/generated']) {
    try {
      cpSync(join(root, path), join(copy, path), { recursive: true })
    } catch (error) {
      // Deleted and not yet committed.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return copy
}
