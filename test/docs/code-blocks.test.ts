/**
 * A test runs every code block of docs/, or the opening line of the block has the reason why not: ```sh no-run: needs
 * systemd. Programs are in examples/, where tests run them. A page shows them as blocks that name a file or a region
 * of one. With `DOCS_BLOCKS=1` this test copies the files into those blocks. They are copies because forges show the
 * pages too. code-blocks.slow.test.ts runs commands, start.slow.test.ts the page for beginners, and .ci/run the
 * commands of the README.
 */
import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parsePolicyFile } from '../../src/config/policy-file.ts'
import { createSectionChecks } from '../../src/main/load-config.ts'
import { docsPages, type Fence, fencesOf, nameOf, textOf } from '../tools/markdown.ts'
import { findFiles, readSource, repositoryRoot } from '../tools/source-files.ts'

const pages = ['README.md', ...docsPages, ...findFiles('examples/*/README.md')]
const fences = pages.flatMap(fencesOf)
const shown = fences.filter(({ file }) => file !== undefined)
const typed = fences.filter(({ language, file }) => language !== '' && file === undefined)
const runnable = typed.filter(({ reason }) => reason === undefined)
const of = (...languages: string[]) =>
  runnable
    .filter(({ language }) => languages.includes(language))
    .map((fence) => [nameOf(fence), fence] as const)

/** The languages that a test runs as they stand in a page. */
const isRun = ['json', 'yaml', 'sh']
/** Besides these, languages that no machine of the tests can run. */
const mayHaveReason = [...isRun, 'sql', 'swift', 'kotlin']

test('every code block is of a kind that is run, shows a file, or has the reason why it is not run', () => {
  expect(docsPages.length).toBeGreaterThan(40)
  const unmarked = runnable.filter(({ language }) => !isRun.includes(language))
  expect(unmarked.map((fence) => `${nameOf(fence)}: ${fence.language}`)).toEqual([])
  for (const language of isRun) expect(of(language).length, language).toBeGreaterThan(1)
  const reasons = typed.filter(({ reason }) => reason !== undefined)
  const empty = reasons.filter(({ reason = '' }) => reason.length < 8)
  expect(empty.map(nameOf), 'a reason is a sentence').toEqual([])
  const programs = reasons.filter(({ language }) => !mayHaveReason.includes(language))
  expect(programs.map(nameOf), 'a program lies in examples/ and is run').toEqual([])
})

test.each(pages.filter((page) => shown.some((fence) => fence.page === page)))(
  '%s: a code block that names a file shows that file',
  (page) => {
    // From the end, so that the lines before it do not move.
    for (const { file = '', text, line, lastLine } of fencesOf(page).reverse()) {
      if (file === '') continue
      const real = textOf(file)
      if (process.env.DOCS_BLOCKS) {
        const lines = readSource(page).split('\n')
        lines.splice(line, lastLine - line - 1, ...real.trimEnd().split('\n'))
        writeFileSync(`${repositoryRoot}${page}`, lines.join('\n'))
      } else expect(text, `${page}:${line} and ${file}`).toBe(real)
    }
  },
)

test('blocks that name a file are many, and every folder of examples/ is run by a test that names it', () => {
  expect(shown.length).toBeGreaterThan(15)
  const tests = findFiles('test/**/*.test.ts').map(readSource)
  const folders = new Set(findFiles('examples/*/*').map((file) => file.split('/', 2).join('/')))
  expect(folders.size).toBeGreaterThan(8)
  const isNamed = (folder: string) => {
    const title = new RegExp(`['"].*${folder}\\b.*[,(]`)
    return tests.some((source) => title.test(source))
  }
  expect([...folders].filter((folder) => !isNamed(folder))).toEqual([])
})

test.each(docsPages.filter((page) => page.startsWith('docs/zh/')))(
  '%s has the commands, settings and answers of the English page',
  (page) => {
    const path = page.replace('docs/zh/', '')
    const english = [path, path.replace('guides/', '')]
      .map((name) => `docs/${name}`)
      .find((name) => docsPages.includes(name))
    const inEnglish = fencesOf(english ?? '').map(({ text }) => text)
    for (const fence of typed.filter((one) => one.page === page))
      expect(inEnglish, `${nameOf(fence)} and ${english}`).toContain(fence.text)
  },
)

test('what a reader has to put into a command is explained on its page', () => {
  const givenByReader = { $KEY: /`KEY|^KEY=/m, 'codes.example': /`https:\/\/codes\.example`/ }
  const unexplained = of('sh').flatMap(([name, { page, text }]) =>
    Object.entries(givenByReader)
      .filter(([used, told]) => text.includes(used) && !told.test(readSource(page)))
      .map(([used]) => `${name}: ${used}`),
  )
  expect(unexplained).toEqual([])
})

test.each(of('json'))('%s is JSON, or a line of it each', (_, { text }) => {
  expect(() => parseJson(text)).not.toThrow()
})

test.each(of('yaml'))(
  '%s is a policy file, or a part of one, that passes every check',
  async (_, fence) => {
    const result = await parsePolicyFile(
      whole(fence),
      `${repositoryRoot}postern.yaml`,
      env,
      createSectionChecks(),
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

/** Variables of the environment that the examples read. */
const env = new Proxy<Record<string, string>>(
  {
    SMTP_URL: 'smtp://mail.example.com',
    SMPP_URL: 'smpp://user:secret@smsc.example.com',
    SUPABASE_HOOK_SECRET: `v1,whsec_${Buffer.alloc(32).toString('base64')}`,
    TWILIO_ACCOUNT_SID: `AC${'0'.repeat(32)}`,
  },
  { get: (known, name: string) => known[name] ?? `a secret of the vendor for ${name}` },
)

/** A part of a policy file, with the sections that every file must have. */
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
