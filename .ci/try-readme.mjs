// Runs the commands of the README's section "Try it" as a reader would type them, against the running
// demo, and holds each answer to the one the README shows.
//
//   node .ci/try-readme.mjs README.md http://localhost:3000
//
// The convention: in that section every ```sh block is run, one after the other in one shell, except
// the lines that start with npm (which the caller has run). A ```json block below an sh block is what
// it prints: the same members of the same types, and the same booleans; other values are examples.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const [file, demoUrl] = process.argv.slice(2)
const section = /^## Try it\n([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(readFileSync(file, 'utf8'))?.[1]
const steps = []
for (const [, language, text] of (section ?? '').matchAll(/^```(sh|json)\n([\s\S]*?)^```/gm)) {
  if (language === 'json') steps.at(-1).expected = text
  else steps.push({ command: text.replace(/^npm .*\n/gm, '').trim() })
}
const commands = steps.filter(({ command }) => command !== '')
if (commands.length === 0) fail('the section "Try it" of the README has commands')

const boundary = 'postern-next-step'
const script = commands
  .map(({ command }) => `${command}\necho; echo ${boundary}\n`)
  .join('')
  .replaceAll('http://localhost:3000', demoUrl)
  .replaceAll('.postern/', `${process.env.POSTERN_DATA || '.postern'}/`)
const run = spawnSync('bash', ['-euo', 'pipefail', '-c', script], {
  encoding: 'utf8',
  timeout: 180_000,
})
process.stdout.write(run.stderr)
const outputs = run.stdout.split(`\n${boundary}\n`)

for (const [index, { command, expected }] of commands.entries()) {
  const name = `README: ${command.split('\n', 1)[0]}`
  const isDone = index < outputs.length - 1
  const output = (outputs[index] ?? '').trim()
  console.log(`\n$ ${command}\n${output}`)
  const difference = expected && differenceOf(parse(expected), parse(output), 'answer')
  if (!isDone) fail(name)
  else if (difference) fail(`${name} (${difference})`)
  else console.log(`ok: ${name}`)
}

function fail(name) {
  console.log(`NOT OK: ${name}`)
  process.exitCode = 1
}

function parse(text) {
  try {
    return JSON.parse(text)
  } catch {
    return `not JSON: ${text}`
  }
}

function kindOf(value) {
  return Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value
}

/** What is wrong with `actual`, or undefined. */
function differenceOf(expected, actual, path) {
  if (kindOf(expected) !== kindOf(actual)) return `${path} is ${JSON.stringify(actual)}`
  if (typeof expected === 'boolean' && expected !== actual) return `${path} is ${actual}`
  if (kindOf(expected) === 'array') {
    return expected.length > 0 ? differenceOf(expected[0], actual[0], `${path}[0]`) : undefined
  }
  if (kindOf(expected) !== 'object') return undefined
  for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
    const difference = differenceOf(expected[key], actual[key], `${path}.${key}`)
    if (difference) return difference
  }
  return undefined
}
