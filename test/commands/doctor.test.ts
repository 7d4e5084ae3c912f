/** `npm run doctor` as a process: all findings at once, in time, and an exit code. */
import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Finding } from '../../src/base/finding.ts'
import { examine } from '../../src/commands/examine.ts'
import { migrate } from '../../src/storage/migrate.ts'
import { startDns, useDns } from '../tools/dns.ts'
import { ownPostgres, ownRedis } from '../tools/own-servers.ts'
import { posternEnv } from '../tools/postern.ts'
import { runCommand } from '../tools/processes.ts'
import { startSmtp } from '../tools/smtp.ts'

const SECRET = '3b1f9c0e7a5d42868f13e6d90b7c52a4f8e1d3c6b5a79081726354afbecd0912'
const redis = await ownRedis(['--appendonly', 'yes', '--maxmemory', '100mb'])
const database = await ownPostgres()
await migrate(database.url)
const smtp = await startSmtp()

const envOf = (policyFile: Record<string, unknown> = {}, more: Record<string, string> = {}) =>
  posternEnv({
    redis: { url: redis.url },
    database: { url: database.url },
    env: { SECRET, BOOTSTRAP_SECRET_KEY: '', ...more },
    policyFile: {
      code: { length: 6 },
      providers: { mail: { kind: 'smtp', url: smtp.url, from: 'Acme <a@acme.test>' } },
      routes: { email: [{ use: ['mail'] }], sms: [] },
      ...policyFile,
    },
  } as never)

test('as text: each finding is a line, what to do stands below; exit code 1 for the errors', async () => {
  const testing = { recipients: [{ to: 'reviewer@acme.test', code: '123456' }] }
  const { code, stdout, stderr } = await runCommand('doctor', [], envOf({ testing }))
  expect(stderr).toBe('')
  expect(stdout).toMatch(/^ok {7}settings +environment, policy file and templates are correct$/m)
  expect(stdout).toMatch(/^ok {7}provider mail +smtp answers; no login is set$/m)
  expect(stdout).toMatch(/^ok {7}redis +writable master/m)
  expect(stdout).toMatch(/^ok {7}postgresql +writable/m)
  expect(stdout).toMatch(/^ERROR {4}test recipients +1 without an end date/m)
  expect(stdout).toMatch(/^ {9,}→ set testing\.until$/m)
  expect(stdout).toMatch(/^\d+ ok, \d+ warnings, \d+ errors\n$/m)
  expect(stdout).not.toContain(SECRET)
  expect(code).toBe(1)
})

test('dkim of a provider: its key is compared with the published one, once for providers that share it', async () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const published = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  useDns(await startDns({ 's1._domainkey.acme.test': { txt: [`v=DKIM1; p=${published}`] } }))
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  const dkim = { domain: 'acme.test', selector: 's1', privateKey: pem }
  const mail = { kind: 'smtp', url: smtp.url, from: 'a@acme.test', dkim }
  const other = { ...mail, dkim: { ...dkim, selector: 's2' } }
  const findings = await examine(envOf({ providers: { mail, spare: mail, other } }))
  const told = findings.flatMap(({ message }) => (message.includes('DKIM') ? [message] : []))
  expect(told).toEqual([
    'the DKIM key at s1._domainkey.acme.test is the one that signs',
    'no DKIM key at s2._domainkey.acme.test',
    'DKIM aligns with this domain',
    'DKIM aligns with this domain',
  ])
  expect(JSON.stringify(findings)).not.toContain(pem.toString().split('\n')[1])
})

test('ses: its domain is examined, with the selector that the operator names', async () => {
  useDns(await startDns({ 'abc._domainkey.acme.test': { txt: ['v=DKIM1; p=MIIBIjANBgkq'] } }))
  const keys = { accessKeyId: 'AKIA', secretAccessKey: 'x', region: 'eu-west-1' }
  const mail = { kind: 'ses', from: 'Acme <a@acme.test>', ...keys }
  const findings = await examine(envOf({ providers: { mail } }), { dkimSelector: 'abc' })
  const told = findings.filter(({ subject }) => subject === 'mail from acme.test')
  expect(told.map(({ message }) => message)).toEqual(
    expect.arrayContaining([
      'SPF is not needed: SES sends with another envelope, so DKIM must align',
      'DKIM key found at abc._domainkey.acme.test',
    ]),
  )
})

test('no error: exit code 0', async () => {
  const policyFile = {
    providers: { hook: { kind: 'webhook', url: 'https://hook.acme.test', secret: SECRET } },
    routes: { email: [{ use: ['hook'] }], sms: [] },
  }
  const { code, stdout } = await runCommand('doctor', ['--json'], envOf(policyFile))
  const findings = JSON.parse(stdout) as Finding[]
  // The tests' PostgreSQL may run without fsync, which the doctor rightly reports.
  const errors = findings.filter(
    ({ state, message }) => state === 'error' && !/fsync/.test(message),
  )
  expect(errors).toEqual([])
  expect(code).toBe(findings.some(({ state }) => state === 'error') ? 1 : 0)
})

test('wrong settings are errors with their line, and the servers are looked at all the same', async () => {
  const env = envOf({ code: { length: 2 } }, { SECRET: 'short', PORT: 'many' })
  const { code, stdout } = await runCommand('doctor', ['--json'], env)
  expect(code).toBe(1)
  const findings = JSON.parse(stdout) as Finding[]
  const messages = findings.filter(({ state }) => state === 'error').map(({ message }) => message)
  expect(messages).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^SECRET: must have at least 32 bytes/),
      expect.stringMatching(/^PORT/),
      expect.stringMatching(/\.yaml:\d+: code\.length/),
    ]),
  )
  expect(findings).toContainEqual(expect.objectContaining({ subject: 'redis', state: 'ok' }))
})

test('nothing set at all, and servers that hang: it ends within ten seconds', async () => {
  const nothing = await runCommand('doctor', ['--json'], {})
  expect(nothing.code).toBe(1)
  expect(nothing.stdout).toContain('DATABASE_URL is not set')
  redis.freeze()
  const startedAt = performance.now()
  const { code, stdout } = await runCommand('doctor', [], envOf())
  redis.thaw()
  expect(performance.now() - startedAt).toBeLessThan(20_000)
  expect(code).toBe(1)
  expect(stdout).toMatch(/^ERROR {4}redis +redis is out of reach$/m)
})

test('an argument it does not know', async () => {
  const { code, stderr } = await runCommand('doctor', ['--fix'])
  expect(code).toBe(1)
  expect(stderr).toContain('Usage: npm run doctor')
})
