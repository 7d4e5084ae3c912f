/** `npm run doctor` as a process: all findings at once, in time, and an exit code. */
import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { createKeyStore } from '../../../src/access/key-store.ts'
import type { Finding } from '../../../src/base/finding.ts'
import { everyApp } from '../../../src/base/names.ts'
import { examine } from '../../../src/main/commands/examine.ts'
import { migrate } from '../../../src/storage/migrate.ts'
import { databaseAt } from '../../tools/database.ts'
import { startDns, useDns } from '../../tools/dns.ts'
import { ownPostgres, ownRedis } from '../../tools/own-servers.ts'
import { posternEnv } from '../../tools/postern.ts'
import { runCommand } from '../../tools/processes.ts'
import { startSmtp } from '../../tools/smtp.ts'
import { eventually } from '../../tools/wait.ts'

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
  // To a busy machine, a server can be out of reach for a while.
  const { code, stdout, stderr } = await eventually(
    async () => {
      const ended = await runCommand('doctor', [], envOf({ testing }))
      return !ended.stdout.includes('out of reach') && ended
    },
    { withinMs: 150_000 },
  )
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
  const findings = await examine(envOf({ providers: { mail } }), 'abc')
  const told = findings.filter(({ subject }) => subject === 'mail from acme.test')
  expect(told.map(({ message }) => message)).toEqual(
    expect.arrayContaining([
      'SPF is not needed: SES sends with another envelope, so DKIM must align',
      'DKIM key found at abc._domainkey.acme.test',
    ]),
  )
})

/** No mail, so nothing is asked of the DNS. */
const byWebhook = {
  providers: { hook: { kind: 'webhook', url: 'https://hook.acme.test', secret: SECRET } },
  routes: { email: [{ use: ['hook'] }], sms: [] },
}

test('no error: exit code 0', async () => {
  const { code, stdout } = await runCommand('doctor', ['--json'], envOf(byWebhook))
  const findings = JSON.parse(stdout) as Finding[]
  // The tests' PostgreSQL may run without fsync, which the doctor rightly reports.
  const errors = findings.filter(
    ({ state, message }) => state === 'error' && !/fsync/.test(message),
  )
  expect(errors).toEqual([])
  expect(code).toBe(findings.some(({ state }) => state === 'error') ? 1 : 0)
})

test('apps that share counts: only valid keys of servers and pages count, not ended keys or operators', async () => {
  const opened = databaseAt(database.url, 1)
  const keys = createKeyStore(opened)
  const told = async () => {
    const findings = await examine(envOf(byWebhook))
    return findings.filter(({ subject }) => subject === 'apps').map(({ message }) => message)
  }
  await keys.create({ name: 'web', app: 'shop' })
  await keys.create({ name: 'anna', app: everyApp, kind: 'operator' })
  const { id } = await keys.create({ name: 'old', app: 'depot' })
  await keys.revoke(id)
  expect(await told()).toEqual(['only one app has keys'])
  await keys.create({ name: 'new', app: 'depot' })
  expect(await told()).toEqual([expect.stringMatching(/^2 apps, /)])
})

test('wrong settings are errors with their line, and the servers are still examined', async () => {
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

test('nothing set at all: each missing setting is an error', async () => {
  const { code, stdout } = await runCommand('doctor', ['--json'], {})
  expect(code).toBe(1)
  expect(stdout).toContain('DATABASE_URL is not set')
})

test('a server that hangs: the doctor ends by itself, and reports it', async () => {
  redis.freeze()
  const { code, stdout } = await runCommand('doctor', [], envOf())
  redis.thaw()
  expect(code).toBe(1)
  expect(stdout).toMatch(/^ERROR {4}redis +redis is out of reach$/m)
})

test('--dkim-selector takes a DNS name; any other text is refused with the usage', async () => {
  const [right, wrong] = await Promise.all(
    ['2026-a.mail', 'two words'].map((name) => runCommand('doctor', ['--dkim-selector', name])),
  )
  expect(right?.stdout).toContain('DATABASE_URL is not set')
  expect(wrong).toMatchObject({ code: 1, stdout: '' })
  expect(wrong?.stderr).toMatch(/^--dkim-selector "two words" [\s\S]*Usage: npm run doctor/)
})

test('an argument it does not know', async () => {
  const { code, stderr } = await runCommand('doctor', ['--fix'])
  expect(code).toBe(1)
  expect(stderr).toContain('Usage: npm run doctor')
})
