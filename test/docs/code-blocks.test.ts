/**
 * Every code block of docs/ is run by a test, or says in its opening line why not: ```sh no-run: needs a vendor account.
 * Here are those that cost nothing; commands and types are in code-blocks.slow.test.ts, the page of a beginner in
 * start.slow.test.ts, and the commands of the README in .ci/run.
 */
import { expect, test } from 'vitest'
import { parsePolicyFile } from '../../src/config/policy-file.ts'
import { sectionChecks } from '../../src/main/load-config.ts'
import { docsPages, type Fence, fencesOf, nameOf } from '../tools/markdown.ts'
import { readSource, repositoryRoot } from '../tools/source-files.ts'

const fences = ['README.md', ...docsPages].flatMap(fencesOf)
const runnable = fences.filter(({ language, reason }) => language !== '' && reason === undefined)
const of = (...languages: string[]) =>
  runnable
    .filter(({ language }) => languages.includes(language))
    .map((fence) => [nameOf(fence), fence] as const)

/** The languages that a test runs. */
const isRun = ['json', 'yaml', 'sh', 'ts', 'js', 'html']

test('every code block is of a kind that is run, or says why it is not', () => {
  expect(docsPages.length).toBeGreaterThan(40)
  const unmarked = runnable.filter(({ language }) => !isRun.includes(language))
  expect(unmarked.map((fence) => `${nameOf(fence)}: ${fence.language}`)).toEqual([])
  for (const language of isRun) expect(of(language).length, language).toBeGreaterThan(1)
  const empty = fences.filter(({ reason }) => reason !== undefined && reason.length < 8)
  expect(empty.map(nameOf), 'a reason is a sentence').toEqual([])
})

test('what a reader has to put into a command is explained on its page', () => {
  const givenByReader = { $KEY: /`KEY|^KEY=/m, 'codes.example': /`https:\/\/codes\.example`/ }
  const unexplained = of('sh').flatMap(([name, { page, text }]) =>
    Object.entries(givenByReader)
      .filter(([used, told]) => text.includes(used) && !told.test(readSource(page)))
      .map(([used]) => `${name}: ${used}`),
  )
  expect(unexplained).toEqual([])
})

test('a code block that names a file of deploy/ shows that file', () => {
  const samples = fences.filter(({ file }) => file?.startsWith('deploy/'))
  expect(samples.length).toBeGreaterThan(2)
  for (const { file = '', text } of samples) expect(text, file).toBe(readSource(file))
})

test('html: nothing but the pages that start.slow.test.ts opens', () => {
  expect(of('html').map(([, { file }]) => file)).toEqual(['my-page.html', 'my-page.html'])
})

test.each(of('json'))('%s is JSON, or a line of it each', (_, { text }) => {
  expect(() => parseJson(text)).not.toThrow()
})

test.each(of('yaml'))(
  '%s is a policy file, or a part of one, that passes every check',
  (_, fence) => {
    const result = parsePolicyFile(
      whole(fence),
      `${repositoryRoot}postern.yaml`,
      env,
      sectionChecks,
    )
    expect(result).toMatchObject({ ok: true })
  },
)

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  }
}

/** What the examples read from the environment. */
const env = new Proxy<Record<string, string>>(
  {
    SMTP_URL: 'smtp://mail.example.com',
    SMPP_URL: 'smpp://user:secret@smsc.example.com',
    TWILIO_ACCOUNT_SID: `AC${'0'.repeat(32)}`,
  },
  { get: (known, name: string) => known[name] ?? 'a secret of the vendor, long enough' },
)

/** A part with what every file must have besides. */
function whole({ text }: Fence): string {
  const policies = ['captcha', 'notice', 'check'].filter((name) => !text.includes(`  ${name}:`))
  const completed = text.replace(
    /^policies:\n/m,
    `policies:\n${policies.map((name) => `  ${name}: []\n`).join('')}`,
  )
  const sections = [
    'policies: { captcha: [], notice: [], check: [] }',
    'providers: { sandbox: { kind: sandbox } }',
    'routes: {}',
  ].filter((section) => !new RegExp(`^${section.split(':')[0]}:`, 'm').test(text))
  return `${completed}${sections.join('\n')}\n`
}
