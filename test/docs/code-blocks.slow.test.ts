/** The commands of docs/ against a running Postern. */
import { execFile } from 'node:child_process'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { testDatabase } from '../tools/database.ts'
import { docsPages, type Fence, fencesOf, nameOf } from '../tools/markdown.ts'
import { environmentWithNode } from '../tools/node-versions.ts'
import { passFor } from '../tools/pass.ts'
import { type Postern, startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { readSource, repositoryRoot } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'
import { differenceOf, pairsOf } from './shown-answer.ts'

const isRun = (fence: Fence) => fence.reason === undefined
/** A page that another test follows as a whole, with a browser. */
const isStart = ({ page }: Fence) => page.endsWith('/start.md')
/** Blocks of a Chinese page are also on the English one: code-blocks.test.ts. */
const pages = docsPages
  .filter((page) => !page.startsWith('docs/zh/'))
  .map((page) => ({ page, fences: fencesOf(page).filter((fence) => !isStart(fence)) }))
  .filter(({ fences }) => fences.some((fence) => fence.language === 'sh' && isRun(fence)))

const database = await testDatabase()
/** A reader's own Node may be the oldest that is promised. */
const readersEnv = await environmentWithNode(20)
let compared = 0

test.each(pages)(
  '$page: each command runs, and answers what is shown',
  async ({ fences }) => {
    const policyFile = { policies: policiesWith(fences) }
    const postern = await startPostern({ on: { redis: await testRedis(), database }, policyFile })
    const env = await environmentOf(postern, fences)
    /** Replaces values of the page that differ here: ids. */
    const real = new Map<string, string>()
    for (const [index, fence] of fences.entries()) {
      if (fence.language !== 'sh' || !isRun(fence)) continue
      const output = await run(await commandOf(fence, postern, real), env, nameOf(fence))
      const shown = fences[index + 1]
      // Only right below the block. Otherwise it belongs to another block.
      if (!shown || shown.line > fence.lastLine + 2) continue
      const [body, status] = partsOf(shown)
      if (status) expect(output, nameOf(shown)).toContain(status)
      if (body === '') continue
      compared += 1
      const expected = JSON.parse(body)
      let answer = answerIn(output)
      const compare = () =>
        expect(differenceOf(expected, answer, 'answer'), nameOf(shown)).toBeUndefined()
      const readAgain = async () => {
        answer = answerIn(await run(await commandOf(fence, postern, real), env, nameOf(fence)))
        compare()
      }
      // Commands that only read may run before the worker was there.
      if (isReading(fence) && differenceOf(expected, answer, 'answer')) await eventually(readAgain)
      else compare()
      for (const [told, found] of pairsOf(expected, answer)) real.set(told, found)
    }
    await postern.stop()
  },
  180_000,
)

/** The shipped policies, and those that the page lets a reader add. */
function policiesWith(fences: readonly Fence[]): object {
  const policiesIn = (yaml: string) => (parse(yaml) as { policies?: object }).policies
  const shown = fences.filter((fence) => fence.language === 'yaml' && isRun(fence))
  const shipped = policiesIn(readSource('postern.yaml'))
  return Object.assign({}, ...shown.map(({ text }) => policiesIn(text)), shipped)
}

const isReading = ({ text }: Fence) => text.includes('curl') && !/ -d | -X /.test(text)
const answerIn = (output: string) => JSON.parse(output.slice(output.search(/^[[{]/m)))

test('answers were compared', () => expect(compared).toBeGreaterThan(15))

async function environmentOf(postern: Postern, fences: Fence[]): Promise<Record<string, string>> {
  const keys = { KEY: postern.key, SECRET_KEY: postern.key }
  const servers = { DATABASE_URL: postern.database.url, POSTERN_URL: postern.url }
  return fences.some(({ text }) => text.includes('$PASS'))
    ? { ...keys, ...servers, PASS: await passFor(postern, '+8613800138000', 'signup') }
    : { ...keys, ...servers }
}

/** The text that a reader types: with the ids of earlier answers, and the code that was sent. */
async function commandOf({ text }: Fence, postern: Postern, real: Map<string, string>) {
  let command = text.replaceAll(/https?:\/\/(localhost:3000|codes\.example)/g, postern.url)
  for (const [told, found] of real) command = command.replaceAll(told, found)
  const recipient = /"to":"([^"]+)"/.exec(command)?.[1] ?? ''
  if (/"code":"\d+"/.test(command)) {
    const [newest] = await postern.messages(recipient)
    const code = /\d{4}/.exec(newest?.text ?? '')?.[0] ?? (await postern.codeFor(recipient))
    command = command.replace(/"code":"\d+"/, `"code":"${code}"`)
  }
  return command
}

/** The output of a program. For a program that fails, the exit code and the output. */
const told = (program: string, args: string[], env: NodeJS.ProcessEnv = process.env) =>
  new Promise<{ failed: boolean; output: string }>((resolve) => {
    const options = { cwd: repositoryRoot, timeout: 120_000, env }
    execFile(program, args, options, (error, stdout, stderr) => {
      resolve({ failed: error !== null, output: error ? `${stdout}${stderr}` : stdout })
    })
  })

async function run(command: string, env: Record<string, string>, name: string): Promise<string> {
  const script = `curl() { command curl -sS --fail-with-body --max-time 10 "$@"; }\n${command}`
  const args = ['-euo', 'pipefail', '-c', script]
  const { failed, output } = await told('bash', args, { ...readersEnv, ...env })
  expect(failed ? output : '', name).toBe('')
  return output.replaceAll('\r', '')
}

/** The JSON of a block, and its status line. Both are empty if the block is no answer. */
function partsOf({ language, text }: Fence): [body: string, status: string] {
  if (language === 'json') return [text, '']
  const status = /^HTTP\/1\.1 .*/.exec(text)?.[0] ?? ''
  return status === '' ? ['', ''] : [text.split('\n\n').slice(1).join('').trim(), status]
}
