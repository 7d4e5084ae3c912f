import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadConfig } from '../../src/main/load-config.ts'
import { dkimSettingsIn } from '../../src/providers/smtp/dkim.ts'
import { serverFolder } from '../tools/debian-server.ts'

const rsa = (modulusLength: number) =>
  generateKeyPairSync('rsa', { modulusLength }).privateKey.export({ type: 'pkcs8', format: 'pem' })
const key = rsa(1024)
const names = { domain: 'acme.test', selector: 'mail2026' }

const problemOf = (given: object) => {
  const { error } = dkimSettingsIn('.').safeParse({ ...names, privateKey: key, ...given })
  return error?.issues.map(({ path, message }) => `${path}: ${message}`).join()
}

test('a key as text or as a file, PKCS#8 or PKCS#1', () => {
  const file = join(serverFolder('dkim'), 'key.pem')
  writeFileSync(file, key)
  const old = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
  for (const privateKey of [key, file, old.export({ type: 'pkcs1', format: 'pem' })]) {
    expect(problemOf({ privateKey })).toBe(undefined)
  }
})

const ed25519 = generateKeyPairSync('ed25519')
const locked = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({
  ...{ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'locked' },
} as never) as unknown as string
const cut = key.toString().replace(/(\n[^\n]+){5}\n-----END/, '\n-----END')

test.each([
  ['a file that is not there', '/nowhere/MIIE.pem', /nor a file that can be read \(ENOENT\)/],
  ['text without BEGIN', key.toString().split('\n')[1], /neither a key that begins/],
  ['nothing', '', /neither a key/],
  ['half a key', cut, /must be a private key in PEM form/],
  [
    'a public key',
    ed25519.publicKey.export({ type: 'spki', format: 'pem' }),
    /must be a private key/,
  ],
  ['Ed25519', ed25519.privateKey.export({ type: 'pkcs8', format: 'pem' }), /must be an RSA key/],
  ['a key with a passphrase', locked, /locked with a passphrase/],
  ['a small key', rsa(512), /an RSA key of 512 bits/],
])('%s is refused, and not quoted', (_, privateKey, expected) => {
  const problem = problemOf({ privateKey })
  expect(problem).toMatch(expected)
  expect(problem).toMatch(/^privateKey: /)
  expect(problem).not.toMatch(/MII/)
})

test.each([
  [{ domain: 'acme' }, /^domain: must be a domain/],
  [{ domain: 'acme.test; s=x' }, /^domain: /],
  [{ selector: 'a b' }, /^selector: must be a selector/],
  [{ selector: '_x' }, /^selector: /],
  [{ keys: [] }, /unrecognized/i],
])('refuses %j', (given, expected) => {
  expect(problemOf(given)).toMatch(expected)
})

test('in the policy file, a relative path of the key begins at the file', async () => {
  const folder = serverFolder('dkim')
  writeFileSync(join(folder, 'key.pem'), key)
  const problemsOf = async (privateKey: string) => {
    const dkim = { ...names, privateKey }
    const mail = { kind: 'smtp', url: 'smtp://127.0.0.1', from: 'a@acme.test', dkim }
    const text = JSON.stringify({ providers: { mail } })
    const loaded = await loadConfig({}, { text, path: join(folder, 'postern.yaml') })
    return loaded.ok ? [] : loaded.problems.filter((problem) => problem.includes('dkim.'))
  }
  expect(await problemsOf('key.pem')).toEqual([])
  expect(await problemsOf('other.pem')).toHaveLength(1)
})

test('at start: the line of the policy file, and nothing of the key', async () => {
  const text = `providers:
  mail:
    kind: smtp
    url: smtp://127.0.0.1
    from: a@acme.test
    dkim:
      domain: acme.test
      selector: mail2026
      privateKey: ${JSON.stringify(cut)}
`
  const loaded = await loadConfig({}, { text, path: 'postern.yaml' })
  const problems = loaded.ok ? [] : loaded.problems
  expect(problems.filter((problem) => problem.includes('dkim'))).toEqual([
    expect.stringMatching(/^postern\.yaml:9: .*privateKey.* must be a private key in PEM form/),
  ])
  expect(JSON.stringify(problems)).not.toContain('MII')
})
