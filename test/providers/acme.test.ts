/** The provider kind of examples/own-provider, and kinds that break promises of the suite. */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
import type { Provider } from '../../src/providers/provider.ts'
import { commonEnv } from '../tools/processes.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { type ConformanceCase, createSuite, shortMs, tryAll } from './conformance.ts'
import { farEndTools } from './far-ends/http.ts'
import { testConformance } from './test-conformance.ts'

const example = 'examples/own-provider/acme-provider.js'
// @ts-expect-error: JavaScript
const acme: ConformanceCase = await import('../../examples/own-provider/acme-provider.js')

testConformance(acme)

/** The example with a provider that differs. */
const withProvider = (change: (provider: Provider) => Partial<Provider>): ConformanceCase => ({
  ...acme,
  default: {
    ...acme.default,
    create(...given) {
      const provider = acme.default.create(...given)
      return { ...provider, ...change(provider) }
    },
  },
})
const answering = (answer: unknown) => withProvider(() => ({ send: async () => answer as never }))

/** The result of the promises whose title contains this text; undefined for promises that are kept. */
async function broken(given: ConformanceCase, promise: RegExp): Promise<(string | undefined)[]> {
  const suite = createSuite(given, farEndTools)
  await suite.open()
  const told: (string | undefined)[] = []
  try {
    for (const { keep } of suite.promises.filter(({ says }) => promise.test(says))) {
      told.push(
        await keep().then(
          () => undefined,
          (error: Error) => error.message,
        ),
      )
    }
  } finally {
    await suite.close()
  }
  expect(told.length).toBeGreaterThan(0)
  return told
}

test.each<[string, ConformanceCase, RegExp, RegExp]>([
  [
    'settings that take anything',
    {
      ...acme,
      default: {
        ...acme.default,
        settings: {
          safeParse: () => ({ success: true, data: { url: 'http://127.0.0.1:1', token: 'x' } }),
          parse: () => ({ url: 'http://127.0.0.1:1', token: 'x' }),
        } as never,
      },
    },
    /unknown keys/,
    /took the unknown key "colour"/,
  ],
  [
    'a channel that the kind has not',
    {
      ...acme,
      conformance: {
        ...acme.conformance,
        message: { ...acme.conformance.message, channel: 'email' },
      },
    },
    /carries the channel/,
    /channels lacks email/,
  ],
  [
    'one number that stops all',
    { ...acme, conformance: { ...acme.conformance, expected: { postpone: 'throttled' } as never } },
    /keeps no other message back/,
    /expected\.postpone is throttled; that would keep the messages of all others back/,
  ],
  [
    'another result',
    answering({ kind: 'accepted' }),
    /does: reject/,
    /when the far end did reject, the result was .* and not rejected/,
  ],
  [
    'accepted, and nothing was sent',
    answering({ kind: 'accepted' }),
    /does: accept/,
    /the far end did not take one message/,
  ],
  [
    'a result of its own',
    answering({ kind: 'ok' }),
    /does: accept/,
    /which is none of the results/,
  ],
  ['no result', answering(undefined), /does: accept/, /send answered undefined/],
  [
    'a detail of two lines',
    answering({ kind: 'rejected', detail: 'a\nb' }),
    /does: reject/,
    /has a detail .* that cannot be kept/,
  ],
  [
    'a send that throws',
    withProvider(() => ({
      send: () => {
        throw new Error('oh')
      },
    })),
    /does: accept/,
    /send threw \(Error: oh\)/,
  ],
  [
    'a send that rejects',
    withProvider(() => ({ send: async () => Promise.reject(new Error('oh')) })),
    /does: reject/,
    /send threw \(Error: oh\)/,
  ],
  [
    'a reference of its own',
    withProvider(({ send }) => ({
      send: (message, signal) => send({ ...message, noticeId: 'mine' }, signal),
    })),
    /does: accept/,
    /did not see the notice id as reference/,
  ],
  [
    'another reference for a retry',
    withProvider(({ send }) => ({
      send: (message, signal) =>
        send({ ...message, noticeId: `${message.noticeId}-${performance.now()}` }, signal),
    })),
    /is retried/,
    /the references differ/,
  ],
  [
    'a send after the signal',
    withProvider(({ send }) => ({
      send: (message) => send(message, new AbortController().signal),
    })),
    /aborted before/,
    /the result was .*accepted.* and not unavailable/,
  ],
  [
    '"not taken" for what was taken',
    withProvider(({ send }) => ({
      async send(message, signal) {
        await send(message, signal)
        return { kind: 'unavailable', detail: 'acme' }
      },
    })),
    /does: lose_answer/,
    /the result was .*unavailable.* and not unknown/,
  ],
  [
    'a number in a detail',
    withProvider(() => ({
      send: async ({ to }) => ({ kind: 'unavailable', detail: `no way to ${to}` }),
    })),
    /does: (?!hang)|tells no/,
    /a result holds "\+447700900123"/,
  ],
])('the suite notices %s', async (_, given, promise, expected) => {
  expect(await broken(given, promise)).toContainEqual(expect.stringMatching(expected))
})

test('the suite notices a far end that complains', async () => {
  const { conformance } = acme
  const settings = (port: number) => ({ ...conformance.settings(port), token: 'wrong' })
  const told = await broken(
    { ...acme, conformance: { ...conformance, settings } },
    /does: unavailable/,
  )
  expect(told).toContainEqual('the far end complained: wrong token')
})

test('a promise that does not end is broken, and no promise after it: each of those gets another far end', async () => {
  const given: ConformanceCase = {
    ...acme,
    default: {
      ...acme.default,
      create(name, settings, deps) {
        const provider = acme.default.create(name, settings, deps)
        const never = () => new Promise<never>(() => {})
        return deps.timeoutMs === shortMs ? { ...provider, send: never, close: never } : provider
      },
    },
    conformance: {
      ...acme.conformance,
      // The far end hangs at the beginning of each promise that does not set its behaviour.
      expected: { accept: 'accepted', postpone: 'postponed', hang: 'unknown' },
    },
  }
  const told = new Map<string, string | undefined>()
  const count = await tryAll(given, farEndTools, 5_000, (says, fault) =>
    told.set(says, fault?.message),
  )
  const broken = [...told].filter(([, fault]) => fault !== undefined)
  expect(broken).toEqual([[expect.stringContaining('does: hang'), 'did not end within 5 s']])
  expect([count, told.size]).toEqual([1, createSuite(given, farEndTools).promises.length])
})

const run = promisify(execFile)
const npm = ['npm', 'run', '--silent', 'conformance', '--'] as const
/** The same program without npm, which takes a second. */
const script = [
  process.execPath,
  join(repositoryRoot, 'test/providers/run-conformance.ts'),
] as const
const conformance = (
  file: string,
  [program, ...args]: readonly [string, ...string[]] = script,
  cwd = repositoryRoot,
) =>
  run(program, [...args, file], { cwd, env: { ...process.env, ...commonEnv } }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  )

test('npm run conformance of examples/own-provider: a path from the current folder; broken promises in words, and exit code 1', async () => {
  const kept = await conformance(
    './acme-provider.js',
    npm,
    join(repositoryRoot, 'examples/own-provider'),
  )
  expect(kept).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/All \d+ promises are kept/),
  })
  const worse = readFileSync(join(repositoryRoot, example), 'utf8')
    .replace("'zod'", JSON.stringify(import.meta.resolve('zod')))
    .replace("? 'postponed' : 'throttled'", "? 'throttled' : 'throttled'")
  const file = join(inject('runFolder'), 'worse-provider.js')
  writeFileSync(file, worse)
  const { code, stdout } = await conformance(file, npm)
  expect(code).toBe(1)
  expect(stdout).toContain('BROKEN  answers postponed when the far end does: postpone')
  expect(stdout).toMatch(
    /when the far end did postpone, the result was .*throttled.* and not postponed/,
  )
  expect(stdout).toMatch(/1 of \d+ promises are broken\./)
})

test('conformance of a provider whose errors nothing catches → that it would end the worker', async () => {
  const text = readFileSync(join(repositoryRoot, example), 'utf8')
    .replace("'zod'", JSON.stringify(import.meta.resolve('zod')))
    .replace('let mayBeTaken', "setImmediate(() => { throw new Error('oh') })\n let mayBeTaken")
  const file = join(inject('runFolder'), 'throwing-provider.mjs')
  writeFileSync(file, text)
  const { code, stderr } = await conformance(file)
  expect([code, stderr.trim()]).toEqual([
    1,
    `${file}: an error that nothing catches would end the worker: Error: oh`,
  ])
})

test.each([
  ['no such file', undefined, /Cannot find module/],
  ['no kind', 'export default 7', /is not a provider kind/],
  [
    'no case',
    `export { default } from '${new URL(example, `file://${repositoryRoot}`)}'`,
    /its export `conformance` lacks startFarEnd, settings, secrets, message, expected/,
  ],
])('conformance of %s → one line about it, and exit code 1', async (name, text, expected) => {
  const file = join(inject('runFolder'), `${name.replaceAll(' ', '-')}.mjs`)
  if (text !== undefined) writeFileSync(file, text)
  const { code, stderr } = await conformance(file)
  expect(code).toBe(1)
  expect(stderr).toMatch(expected)
  expect(stderr.trim().split('\n')).toHaveLength(1)
})
