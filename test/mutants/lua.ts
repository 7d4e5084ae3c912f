/**
 * Mutants of Lua, which Stryker cannot read: small changes of one script, and the test runs that should notice them.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { findFiles, findSourceFiles, readSource, repositoryRoot } from '../tools/source-files.ts'

interface LuaMutant {
  readonly line: number
  readonly before: string
  readonly after: string
}

const changes: readonly (readonly [what: RegExp, becomes: (text: string) => string])[] = [
  [/ == /g, () => ' ~= '],
  [/ ~= /g, () => ' == '],
  [/ <=? /g, (text) => (text === ' < ' ? ' <= ' : ' < ')],
  [/ >=? /g, (text) => (text === ' > ' ? ' >= ' : ' > ')],
  [/ [-+] /g, (text) => (text === ' + ' ? ' - ' : ' + ')],
  [/ [*/] /g, (text) => (text === ' * ' ? ' / ' : ' * ')],
  [/ (and|or) /g, (text) => (text === ' or ' ? ' and ' : ' or ')],
  [/\bnot /g, () => ''],
  [/\b(max|min)\b/g, (text) => (text === 'max' ? 'min' : 'max')],
  [/\b(true|false)\b/g, (text) => (text === 'true' ? 'false' : 'true')],
  [/(?<=\bif ).+?(?= then\b)/g, () => 'true'],
  [/(?<=\bif ).+?(?= then\b)/g, () => 'false'],
  [/(?<![\w.[])\d+(?![\w\]])/g, (text) => String(Number(text) + 1)],
  // A call without a result.
  [/^\s*(redis\.call|table\.\w+)\(.*\)$/g, () => ''],
]

/** Every change of every line, without comments. */
export function luaMutantsOf(source: string): LuaMutant[] {
  return source.split('\n').flatMap((before, index) => {
    const code = before.replace(/--.*$/, '')
    return changes.flatMap(([what, becomes]) =>
      [...code.matchAll(what)].map(({ 0: text, index: at }) => ({
        line: index + 1,
        before,
        after: before.slice(0, at) + becomes(text) + before.slice(at + text.length),
      })),
    )
  })
}

/** The room whose tests should notice the changes: the room that loads the script, or a script that includes it. */
export function roomOfScript(script: string): string {
  const file = basename(script)
  const includer = findFiles('lua/*.lua').find((other) =>
    readSource(other).includes(`include ${file}`),
  )
  if (includer) return roomOfScript(includer)
  const call = `loadScript('${file.replace('.lua', '')}')`
  const loader = findSourceFiles().find((source) => readSource(source).includes(call))
  return loader?.split('/')[1] ?? ''
}

/** Prints the mutants that the tests let pass, and how many there were. */
export async function tryLuaMutants(
  script: string,
  treeFolder: string,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const tree = resolve(treeFolder)
  copyTree(tree)
  process.once('exit', () => rmSync(tree, { recursive: true, force: true }))
  if (!(await testsPass(tree, env))) throw new Error('the tests do not pass without a mutant')

  const lines = readSource(script).split('\n')
  const mutants = luaMutantsOf(lines.join('\n'))
  let noticed = 0
  for (const [at, { line, before, after }] of mutants.entries()) {
    writeFileSync(join(tree, script), lines.with(line - 1, after).join('\n'))
    if (await testsPass(tree, env)) {
      console.log(`[Survived] ${script}:${line}\n-   ${before.trim()}\n+   ${after.trim()}`)
    } else noticed += 1
    console.log(`${at + 1} of ${mutants.length} mutants tried, ${noticed} noticed`)
  }
  writeFileSync(join(tree, script), lines.join('\n'))
  // Otherwise the tests failed for another reason than the mutants.
  if (!(await testsPass(tree, env))) throw new Error('the tests no longer pass without a mutant')
}

/** Files that Git has or would add, and generated files. */
function copyTree(tree: string): void {
  rmSync(tree, { recursive: true, force: true })
  const { stdout } = spawnSync('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
  })
  const files = stdout.split('\n').filter((file) => file && existsSync(join(repositoryRoot, file)))
  for (const path of [...files, 'src/storage/generated', 'web/dist']) {
    cpSync(join(repositoryRoot, path), join(tree, path), { recursive: true })
  }
  symlinkSync(join(repositoryRoot, 'node_modules'), join(tree, 'node_modules'))
}

/** Some mutants never end. */
const runEndsWithinMs = 120_000

async function testsPass(cwd: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--bail', '1', '--maxWorkers', '2']
  const run = spawn(
    'nice',
    ['-n', '19', process.execPath, ...vitest, '--config', 'test/mutants/vitest.config.ts'],
    { cwd, env, stdio: 'ignore', timeout: runEndsWithinMs, killSignal: 'SIGKILL' },
  )
  const [status] = await once(run, 'exit')
  return status === 0
}
