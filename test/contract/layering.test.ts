import { dirname } from 'node:path'
import { expect, test } from 'vitest'
import { findFiles, findSourceFiles, importsIn, readSource } from '../support/source-files.ts'

/**
 * Who may know whom. A request goes http → captcha → limiter / notice → queue → delivery → provider
 * and never back; siblings meet only in `main`. Behind a room stands what it may import beside itself and
 * `base`; `types:` allows `import type` and nothing that runs.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  base: [],
  crypto: [],
  config: ['crypto'],
  metrics: [],
  redis: [],
  db: [],
  recipient: [],
  templates: [],
  queue: [],
  limiter: ['crypto', 'redis', 'recipient'],
  providers: ['crypto'],
  access: ['types:db'],
  challenge: ['crypto', 'redis', 'types:metrics'],
  events: ['crypto', 'types:db', 'types:metrics'],
  idempotency: ['types:db'],
  'login-throttle': ['types:limiter'],
  pass: ['redis', 'types:crypto'],
  notice: [
    'recipient',
    'types:crypto',
    'types:db',
    'types:queue',
    'types:limiter',
    'types:metrics',
  ],
  history: ['redis', 'types:crypto', 'types:limiter', 'types:notice'],
  lookup: ['history', 'types:captcha', 'types:crypto', 'types:db', 'types:limiter', 'types:notice'],
  replay: ['limiter', 'notice', 'redis', 'types:crypto'],
  captcha: ['notice', 'recipient', 'redis', 'types:crypto', 'types:limiter', 'types:metrics'],
  delivery: [
    'queue',
    'redis',
    'types:crypto',
    'types:limiter',
    'types:metrics',
    'types:notice',
    'types:providers',
    'types:templates',
  ],
  receipt: ['notice', 'types:db', 'types:metrics'],
  upkeep: ['types:db', 'types:metrics', 'types:notice', 'types:queue'],
  http: [
    'history',
    'limiter',
    'login-throttle',
    'lookup',
    'notice',
    'pass',
    'recipient',
    'types:access',
    'types:captcha',
    'types:challenge',
    'types:idempotency',
    'types:metrics',
  ],
  console: [
    'crypto',
    'lookup',
    'notice',
    'recipient',
    'replay',
    'types:access',
    'types:delivery',
    'types:events',
    'types:history',
    'types:limiter',
    'types:queue',
    'types:redis',
  ],
  doctor: [
    'db',
    'recipient',
    'redis',
    'types:access',
    'types:config',
    'types:providers',
    'types:templates',
  ],
  main: ['*'],
  dev: ['*', 'types:web/demo'],
}

const roomOf = (file: string) => /^src\/([^/]+)\//.exec(file)?.[1]

function violationsIn(file: string, source: string): string[] {
  const room = roomOf(file) ?? ''
  const allowed = mayImport[room]
  if (!allowed) return [`${file}: no room of this name is in the table`]
  return importsIn(file, source)
    .filter(({ target, isTypeOnly }) => {
      const other = roomOf(target)
      const rooms = [room, 'base', ...allowed]
      if (other && (rooms.includes('*') || rooms.includes(other))) return false
      // What is out of src goes by its folder.
      return !(isTypeOnly && allowed.includes(`types:${other ?? dirname(target)}`))
    })
    .map(({ target }) => `${file} imports ${target}`)
}

test('every import between rooms is one the table allows', () => {
  const files = findSourceFiles()
  expect(files.length).toBeGreaterThan(0)
  expect(files.flatMap((file) => violationsIn(file, readSource(file)))).toEqual([])
})

test('web/ runs in browsers: it imports nothing of src, and nothing from outside of itself', () => {
  const files = findFiles('web/**/*.ts')
  expect(files.length).toBeGreaterThan(0)
  const foreign = files.flatMap((file) =>
    importsIn(file, readSource(file)).filter(({ target }) => !target.startsWith('web/')),
  )
  expect(foreign).toEqual([])
})

test('every kind of forbidden import is seen: static, of a type, re-exported, on many lines, for effect, dynamic, out of src', () => {
  const forbidden = [
    "import { a } from '../db/a.ts'",
    "import type { A } from '../db/a.ts'",
    "export * from '../db/a.ts'",
    "import {\n  a,\n  b,\n} from '../db/a.ts'",
    "import '../db/a.ts'",
    "const a = await import('../db/a.ts')",
    "import a from '../../test/a.ts'",
    "import { a } from '../main/compose.ts'",
  ]
  for (const line of forbidden) expect(violationsIn('src/providers/x.ts', line)).toHaveLength(1)
  expect(violationsIn('src/attic/x.ts', '')).toHaveLength(1)
})

test('what the table allows passes: the same room, packages, and types alone where it says so', () => {
  const source =
    "import { a } from './a.ts'\nimport { b } from 'b'\nimport { c } from '../base/c.ts'"
  expect(violationsIn('src/providers/x.ts', source)).toEqual([])
  expect(violationsIn('src/notice/x.ts', "import type { L } from '../limiter/index.ts'")).toEqual(
    [],
  )
  expect(violationsIn('src/notice/x.ts', "import { l } from '../limiter/index.ts'")).toHaveLength(1)
  const page = "import { a } from '../../web/demo/a.ts'"
  expect(violationsIn('src/dev/x.ts', page.replace('import', 'import type'))).toEqual([])
  expect(violationsIn('src/dev/x.ts', page)).toHaveLength(1)
  expect(violationsIn('src/main/x.ts', page)).toHaveLength(1)
})
