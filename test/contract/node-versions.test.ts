/**
 * The promises about Node: version 20 or newer installs Postern and runs its small packages, 22 or newer imports Postern,
 * and 24 runs its processes.
 */
import { expect, test } from 'vitest'
import { docsPages } from '../tools/markdown.ts'
import { findFiles, readSource } from '../tools/source-files.ts'

const manifest = (path: string) => JSON.parse(readSource(path))

test('Node 20 or newer is what package.json and every page that installs Postern ask for', () => {
  expect(manifest('package.json').engines.node).toBe('>=20')
  for (const page of ['README.md', 'docs/start.md', 'docs/guides/go-live.md']) {
    expect(readSource(page), page).toContain('Node 20 or newer')
    expect(readSource(page), page).toContain('`EBADENGINE`')
  }
  for (const page of ['docs/zh/start.md', 'docs/zh/guides/go-live.md']) {
    expect(readSource(page), page).toContain('`EBADENGINE`')
  }
})

test('Node 20 or newer is what the small packages ask for, so npm has no warning about them (package.slow.test.ts of each)', () => {
  for (const room of ['limiter', 'sms-rules']) {
    expect(manifest(`src/${room}/package.json`).engines.node).toBe('>=20')
  }
  for (const page of ['src/limiter/README.md', 'src/sms-rules/README.md', 'docs/limiter.md']) {
    expect(readSource(page), page).toContain('Node 20 or newer')
  }
})

test('Node 22 or newer is what the page about an import asks for', () => {
  expect(readSource('docs/embedding.md')).toContain('Node 22 or newer')
  expect(readSource('docs/zh/embedding.md')).toContain('Node 22 或更新版本')
})

/**
 * Commands that start TypeScript with the reader's Node. Before 22.18, Node prints an error that does not name the
 * cause.
 */
const bareCommand = /(?<!npx |api |node_modules\/\.bin\/)\bnode (?:--?\S+ )*[\w./-]+\.ts\b/g
const bareCommandsIn = (text: string): string[] => text.match(bareCommand) ?? []

test('no page and no file names a command that needs a newer Node than the one that is asked for', () => {
  const files = findFiles('{src,bench,examples,docs,site,web,deploy,test/providers}/**/*.ts')
  const texts = [...docsPages, ...findFiles('{,examples/**/,src/**/}*.md'), ...files]
  const ours = texts.filter((file) => !/node_modules|generated|\/dist\//.test(file))
  expect(ours.length).toBeGreaterThan(200)
  const found = ours.flatMap((file) =>
    bareCommandsIn(readSource(file)).map((line) => `${file}: ${line}`),
  )
  expect(found).toEqual([])
})

test('a bare command is seen, and those that bring their Node pass', () => {
  for (const line of [
    'node src/main/commands/keys.ts',
    'run `node bench/a.ts`',
    'A=b node --x src/a.ts',
  ]) {
    expect(bareCommandsIn(line), line).toHaveLength(1)
  }
  const fine = [
    'npx node a/b.ts',
    'exec api node src/main/commands/keys.ts',
    'x/node_modules/.bin/node src/a.ts',
  ]
  for (const line of fine) expect(bareCommandsIn(line), line).toEqual([])
})
