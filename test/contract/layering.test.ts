import { expect, test } from 'vitest'
import { findFiles, findSourceFiles, importsIn, readSource } from '../tools/source-files.ts'

/**
 * The allowed imports between rooms. A request goes http → captcha → limiter / notice → queue → delivery → provider
 * and never back. Siblings meet only in `main`. After each room are the rooms that it may import besides `base`.
 * `types:` allows only `import type`, and `*` every room but `dev`.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  i18n: [],
  base: ['i18n'],
  crypto: [],
  storage: [],
  recipient: [],
  limiter: [],
  'sms-rules': [],
  providers: ['crypto'],
  rules: ['limiter', 'recipient'],
  config: ['crypto', 'rules', 'sms-rules'],
  access: ['types:storage'],
  notice: ['recipient', 'rules', 'types:storage'],
  captcha: ['crypto', 'notice', 'recipient', 'rules'],
  delivery: ['notice', 'recipient', 'sms-rules', 'types:limiter', 'types:providers'],
  upkeep: ['crypto', 'types:notice', 'types:storage'],
  support: ['limiter', 'rules', 'types:captcha', 'types:crypto', 'types:notice', 'types:storage'],
  http: ['captcha', 'limiter', 'notice', 'recipient', 'rules', 'support', 'types:providers'],
  compat: ['crypto', 'types:http'],
  console: [
    'crypto',
    'notice',
    'recipient',
    'rules',
    'support',
    'types:access',
    'types:delivery',
    'types:limiter',
  ],
  main: ['*'],
  dev: ['*'],
}

const roomOf = (file: string) => /^src\/([^/]+)\//.exec(file)?.[1]

function violationsIn(file: string, source: string): string[] {
  const room = roomOf(file) ?? ''
  const allowed = mayImport[room]
  if (!allowed) return [`${file}: no room of this name is in the table`]
  return importsIn(file, source)
    .filter(({ target, isTypeOnly }) => {
      const other = roomOf(target)
      const rooms = room === 'i18n' ? [room] : [room, 'base', ...allowed]
      if (other && (rooms.includes(other) || (rooms.includes('*') && other !== 'dev'))) return false
      return !(isTypeOnly && allowed.includes(`types:${other}`))
    })
    .map(({ target }) => `${file} imports ${target}`)
}

test('every import between rooms is one the table allows', () => {
  const files = findSourceFiles()
  expect(files.length).toBeGreaterThan(0)
  expect(files.flatMap((file) => violationsIn(file, readSource(file)))).toEqual([])
})

test('web/ runs in browsers: it imports texts of src, and nothing else from outside of itself', () => {
  const files = findFiles('web/**/*.ts')
  expect(files.length).toBeGreaterThan(0)
  const foreign = files.flatMap((file) =>
    importsIn(file, readSource(file)).filter(({ target }) => !/^(web|src\/i18n)\//.test(target)),
  )
  expect(foreign).toEqual([])
})

test('every kind of forbidden import is seen: static, of a type, re-exported, on many lines, for effect, dynamic, out of src', () => {
  const forbidden = [
    "import { a } from '../storage/a.ts'",
    "import type { A } from '../storage/a.ts'",
    "export * from '../storage/a.ts'",
    "import {\n  a,\n  b,\n} from '../storage/a.ts'",
    "import '../storage/a.ts'",
    "const a = await import('../storage/a.ts')",
    "import a from '../../test/a.ts'",
    "import { a } from '../main/compose.ts'",
  ]
  for (const line of forbidden) expect(violationsIn('src/providers/x.ts', line)).toHaveLength(1)
  expect(violationsIn('src/attic/x.ts', '')).toHaveLength(1)
  expect(violationsIn('src/main/x.ts', "import '../dev/demo.ts'")).toHaveLength(1)
})

test('what the table allows passes: the same room, packages, and types alone where it allows them', () => {
  const source =
    "import { a } from './a.ts'\nimport { b } from 'b'\nimport { c } from '../base/c.ts'"
  expect(violationsIn('src/providers/x.ts', source)).toEqual([])
  expect(violationsIn('src/upkeep/x.ts', "import type { J } from '../notice/job.ts'")).toEqual([])
  expect(violationsIn('src/upkeep/x.ts', "import { j } from '../notice/job.ts'")).toHaveLength(1)
  const page = "import type { A } from '../../web/demo/a.ts'"
  expect(violationsIn('src/dev/x.ts', page)).toHaveLength(1)
})
