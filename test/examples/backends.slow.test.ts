/**
 * The clients of examples/backends, each of which needs only the library of its language. Every language that this
 * machine has is run, and the title names the missing program of the others.
 */
import { execFile, spawn } from 'node:child_process'
import { type KeyObject, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { decodeProtectedHeader, SignJWT } from 'jose'
import { beforeAll, inject, test } from 'vitest'
import { createSigningKey } from '../../src/captcha/signing-keys.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { findOnPath } from '../../src/dev/find-or-install.ts'
import { listen } from '../tools/listen.ts'
import { passFor } from '../tools/pass.ts'
import { type Postern, startPostern } from '../tools/postern.ts'
import { releaseLater } from '../tools/release.ts'
import { repositoryRoot } from '../tools/source-files.ts'

type Command = readonly [program: string, ...args: string[]]

interface Language {
  readonly name: string
  readonly file: string
  /** The programs that a machine needs for it. */
  readonly programs: readonly string[]
  /** Makes the program in this folder. */
  readonly build?: (file: string, folder: string) => Command
  readonly run: (file: string, folder: string) => Command
  /** Whether it also checks passes without Postern: the library of the language has ES256. */
  readonly readsPasses: boolean
}

const libraries = [
  'System.Net.Http',
  'System.Runtime.Serialization',
  'System.Xml',
  'System.Xml.Linq',
]
/** Debian has a package for each library of Mono. */
const mono = ['mcs', 'mono', ...libraries.map((name) => `/usr/lib/mono/4.5/${name}.dll`)]
const languages: readonly Language[] = [
  {
    ...{ name: 'Java', file: 'Postern.java', programs: ['javac', 'java'], readsPasses: true },
    build: (file, folder) => ['javac', '-d', folder, file],
    run: (_, folder) => ['java', '-XX:TieredStopAtLevel=1', '-cp', folder, 'Postern'],
  },
  {
    ...{ name: 'Python', file: 'postern.py', programs: ['python3'], readsPasses: false },
    run: (file) => ['python3', file],
  },
  {
    ...{ name: 'PHP', file: 'postern.php', programs: ['php'], readsPasses: true },
    run: (file) => ['php', '-d', 'error_reporting=-1', file],
  },
  {
    ...{ name: 'Go', file: 'postern.go', programs: ['go'], readsPasses: true },
    build: (file, folder) => ['go', 'build', '-o', join(folder, 'postern'), file],
    run: (_, folder) => [join(folder, 'postern')],
  },
  {
    ...{ name: 'Ruby', file: 'postern.rb', programs: ['ruby'], readsPasses: true },
    run: (file) => ['ruby', '-W', file],
  },
  {
    ...{ name: 'C#', file: 'Postern.cs', programs: mono, readsPasses: false },
    build: (file, folder) => [
      ...(['mcs', '-warnaserror', `-out:${join(folder, 'Postern.exe')}`] as const),
      ...libraries.map((name) => `-r:${name}`),
      file,
    ],
    run: (_, folder) => ['mono', join(folder, 'Postern.exe')],
  },
]

const secret = 'a secret of at least thirty-two bytes'
const postern = await startPostern({
  env: { SECRET: secret },
  policyFile: {
    policies: {
      captcha: [{ name: 'recipient', key: '{channel}:{to}', sliding: '1 per 1h' }],
      notice: [],
      check: [
        {
          name: 'guesses',
          key: '{channel}:{to}',
          lockout: { limit: 3, window: '5m', lock: '15m' },
        },
      ],
    },
    recipients: { countries: ['CN'] },
  },
})
const front = await startFront(postern)

/** A proxy before Postern that loses and refuses some requests, by the last digits of the recipient. */
async function startFront({ url }: Postern) {
  /** The Idempotency-Key of each send, by recipient. */
  const keys = new Map<string, (string | undefined)[]>()
  let keyReads = 0
  const problems = {
    unavailable: [503, { code: 'unavailable', detail: 'Not now.' }, { 'retry-after': '0' }],
    inProgress: [409, { code: 'idempotency_in_progress' }, { 'retry-after': '0' }],
    page: [502, '<title>Bad gateway</title>', { 'retry-after': '0' }],
    long: [503, { code: 'unavailable' }, { 'retry-after': '60' }],
  } as const
  type Step = keyof typeof problems | 'lost' | 'cut'
  const plans: Readonly<Record<string, readonly Step[]>> = {
    '91': ['unavailable', 'inProgress'],
    '92': ['lost', 'page'],
    '93': ['unavailable', 'unavailable', 'unavailable'],
    '94': ['long'],
    '95': ['cut'],
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url: path = '/', headers } = request
    const body = await buffer(request)
    if (path === '/.well-known/jwks.json') keyReads += 1
    const { to } = method === 'POST' ? JSON.parse(String(body)) : {}
    const calls = `${path} ${to}`
    const seen = keys.get(calls) ?? []
    keys.set(calls, [...seen, headers['idempotency-key'] as string | undefined])
    const step = to === undefined ? undefined : plans[to.slice(-2)]?.[seen.length]
    if (step && step in problems) {
      const [status, text, more] = problems[step as keyof typeof problems]
      response.writeHead(status, more).end(typeof text === 'string' ? text : JSON.stringify(text))
      return
    }
    const names = ['authorization', 'content-type', 'idempotency-key', 'accept-language']
    const forwarded = names.flatMap((name) =>
      headers[name] === undefined ? [] : [[name, String(headers[name])] as [string, string]],
    )
    const given = await fetch(url + path, {
      method,
      headers: forwarded,
      ...(body.length ? { body } : {}),
    })
    const text = await given.text()
    if (step === 'lost') return void response.destroy()
    const more = Object.fromEntries(given.headers)
    // They are about the connection to Postern.
    for (const name of ['transfer-encoding', 'connection', 'keep-alive']) delete more[name]
    response.writeHead(given.status, { ...more, 'content-length': Buffer.byteLength(text) })
    if (step === 'cut') return void response.write(text.slice(0, 20), () => response.destroy())
    response.end(text)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => response.destroy(error))
  })
  return {
    url: await listen(server),
    keysOf: (to: string) => keys.get(`/v1/captchas ${to}`) ?? [],
    keyReads: () => keyReads,
  }
}

/** The client in a terminal: an answer for each command. */
async function startClient({ file: name, build, run }: Language) {
  const folder = mkdtempSync(join(inject('runFolder'), 'backend-'))
  const file = join(repositoryRoot, 'examples/backends', name)
  const { PATH, HOME } = process.env
  const env = { PATH, HOME, LANG: 'C.UTF-8', POSTERN_URL: front.url, SECRET_KEY: postern.key }
  const options = { cwd: folder, env }
  if (build) {
    const [program, ...args] = build(file, folder)
    await promisify(execFile)(program, args, options)
  }
  const [program, ...args] = run(file, folder)
  const child = spawn(program, args, { ...options, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  releaseLater(() => {
    child.kill('SIGKILL')
    return ended
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return async (command: string): Promise<string> => {
    child.stdin.write(`${command}\n`)
    const { value = 'ended' } = await lines.next()
    return value
  }
}

type Client = Awaited<ReturnType<typeof startClient>>

const missingFor = ({ programs }: Language) => programs.filter((name) => !findOnPath(name))
const clients = new Map<Language, Client>()

// Not in a test: what a concurrent test opens would be closed with the first of them.
beforeAll(async () => {
  const there = languages.filter((language) => missingFor(language).length === 0)
  const started = there.map(async (language) => clients.set(language, await startClient(language)))
  await Promise.all(started)
})

test.for(languages.filter((language) => missingFor(language).length > 0))(
  'examples/backends in $name: not run, because this machine lacks a program',
  (language, { skip }) => skip(`no ${missingFor(language).join(', ')}`),
)

const memberOf = (line: string, name: string) =>
  new RegExp(` ${name}=(\\S+)`).exec(line)?.[1] ?? line
const other = (code: string) => (code === '0000' ? '1111' : '0000')

for (const [index, language] of languages.entries()) {
  if (missingFor(language).length > 0) continue
  const toOf = (end: string) => `+86138001${index}00${end}`
  const subject = `examples/backends in ${language.name}`
  const ask: Client = (command) => (clients.get(language) as Client)(command)

  test.concurrent(`${subject}: every answer has its outcome`, async ({ expect }) => {
    const to = toOf('01')
    const sent = await ask(`send sms ${to} signup`)
    expect(sent).toMatch(/^accepted id=\S{36} codeLength=4 scene=signup to=\+8613\*{4}/)
    const id = memberOf(sent, 'id')
    const again = await ask(`send sms ${to} signup`)
    expect(again).toMatch(/^limited retryAfterMs=\d+ detail=Too many requests\./)
    const code = await postern.codeFor(id)
    const check = (typed: string) => ask(`check sms ${to} signup ${typed} ${id}`)
    expect(await check('12')).toMatch(/^invalid_request detail=\S/)
    expect(await check(other(code))).toBe(
      'code_mismatch triesLeft=2 detail=The code is wrong. You have 2 tries left.',
    )
    const passed = await check(code)
    expect(passed).toMatch(/^passed id=\S{36} pass=\S+ scene=signup$/)
    expect(await check(other(code))).toMatch(/^code_gone detail=There is no valid code/)
    const pass = memberOf(passed, 'pass')
    const verify = (one: string, of: string) => ask(`verify ${one} signup sms ${of}`)
    expect(await verify(pass, toOf('02'))).toBe('invalid reason=other_recipient')
    expect(await verify(pass, to)).toBe(`valid scene=signup to=${to}`)
    expect(await verify(pass, to)).toBe('invalid reason=used')
    const ofLogin = await passFor(postern, toOf('03'), 'login')
    expect(await verify(ofLogin, toOf('03'))).toBe('invalid reason=other_scene')

    expect(await ask('send sms abc signup')).toMatch(/^invalid_recipient detail=\S/)
    expect(await ask('send sms +4915112345678 signup')).toMatch(
      /^destination_not_allowed reason=country detail=\S/,
    )
    expect(await ask(`send sms ${to} No`)).toMatch(/^error [Pp]ostern answers 400 to .*scene/)

    const locked = toOf('04')
    const second = memberOf(await ask(`send sms ${locked} signup`), 'id')
    const wrong = other(await postern.codeFor(locked))
    const guess = () => ask(`check sms ${locked} signup ${wrong} ${second}`)
    const guesses = [await guess(), await guess(), await guess(), await guess()]
    expect(guesses[2]).toMatch(/^code_mismatch triesLeft=0 lockedForMs=\d+ /)
    expect(guesses[3]).toMatch(/^locked retryAfterMs=\d+ detail=Locked /)
  })

  test.concurrent(`${subject}: a lost or late answer is asked for again, and sends no second message`, async ({
    expect,
  }) => {
    for (const end of ['91', '92']) {
      expect(await ask(`send sms ${toOf(end)} signup`)).toMatch(/^accepted id=/)
      const keys = front.keysOf(toOf(end))
      expect(keys).toHaveLength(3)
      expect(new Set(keys)).toEqual(new Set([expect.stringMatching(/^\S{16,}$/)]))
      await postern.codeFor(toOf(end))
      expect(await postern.messages(toOf(end))).toHaveLength(1)
    }
    const away = await ask(`send sms ${toOf('93')} signup`)
    expect(away).toBe('unavailable retryAfterMs=0 detail=Not now.')
    expect(await ask(`send sms ${toOf('94')} signup`)).toBe('unavailable retryAfterMs=60000')
    expect(front.keysOf(toOf('94'))).toHaveLength(1)

    // The first answer of each call is lost within its body.
    const to = toOf('95')
    const id = memberOf(await ask(`send sms ${to} signup`), 'id')
    const checked = await ask(`check sms ${to} signup ${await postern.codeFor(to)} ${id}`)
    expect(checked).toMatch(/^passed id=\S{36} pass=\S+/)
    expect(await postern.messages(to)).toHaveLength(1)
  })

  if (!language.readsPasses) continue
  test.concurrent(`${subject}: without Postern, a pass is good once, and a false one is refused`, async ({
    expect,
  }) => {
    const read = (pass: string) => ask(`read ${pass} signup`)
    const [first, second] = [await passFor(postern, toOf('05'), 'signup'), await sign({})]
    expect(await read(first)).toBe('valid scene=signup')
    expect(await read(first)).toBe('invalid reason=used')
    expect(await read(await sign({ aud: 'shop' }))).toBe('invalid reason=other_app')
    expect(await read(await sign({ exp: nowS - 1 }))).toBe('invalid reason=expired')
    expect(await read(await sign({ scene: 'login' }))).toBe('invalid reason=other_scene')

    const [header = '', claims = '', signature = ''] = second.split('.')
    const inBase64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const { privateKey } = await createSigningKey(() => Buffer.alloc(32, 7))
    const { kid } = decodeProtectedHeader(first)
    const forged = [
      await sign({}, privateKey),
      await sign({}, privateKey, 'unknown'),
      await sign({ iss: 'another' }),
      await sign({ jti: undefined }),
      await sign({ scene: undefined }),
      `${inBase64({ alg: 'none', kid })}.${claims}.`,
      `${inBase64({ alg: 'HS256', kid })}.${claims}.${signature}`,
      `${inBase64({ alg: 'ES256' })}.${claims}.${signature}`,
      `${inBase64([])}.${claims}.${signature}`,
      `${header}.${first.split('.')[1]}.${signature}`,
      `${header}.${claims}.${Buffer.alloc(64).toString('base64url')}`,
      `${header}.${claims}.${signature.slice(0, 20)}`,
      `${header}.${claims}`,
      ...[
        `${header}.${claims}.`,
        'a.b.c',
        '..',
        '%.%.%',
        `${'[['.repeat(900)}.a.b`,
        'x'.repeat(3_000),
      ],
    ]
    for (const pass of forged)
      expect([pass, await read(pass)]).toEqual([pass, 'invalid reason=invalid'])
    expect(await read(second)).toBe('valid scene=signup')
    // An unknown key is looked for at Postern, at most every ten seconds.
    const unknown = await sign({}, privateKey, 'another')
    for (let count = 0; count < 60; count++) await read(unknown)
    expect(front.keyReads()).toBeLessThan(60)
  })
}

const nowS = Math.floor(Date.now() / 1_000)

/** A pass, by Postern's current key unless another one is given. */
async function sign(claims: object, key?: KeyObject, keyId?: string): Promise<string> {
  const [seedOf = () => Buffer.alloc(0)] = createSecrets(secret).passSeeds
  const { id, privateKey } = await createSigningKey(seedOf)
  const times = { iat: nowS - 400, exp: nowS + 600, jti: randomUUID() }
  const whole = {
    iss: 'postern',
    aud: 'default',
    scene: 'signup',
    channel: 'sms',
    sub: 'x',
    ...times,
  }
  return new SignJWT({ ...whole, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: keyId ?? id })
    .sign(key ?? privateKey)
}
