/** Servers whose certificates are signed by a private authority: CA_FILE, also if it is set in .env. */

import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer, TLSSocket } from 'node:tls'
import { expect, inject, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { makeCertificate } from '../tools/debian-server.ts'
import { listen } from '../tools/listen.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { posternEnv } from '../tools/postern.ts'
import { runCommand } from '../tools/processes.ts'
import { startSmtp } from '../tools/smtp.ts'
import { eventually } from '../tools/wait.ts'

const folder = mkdtempSync(join(inject('runFolder'), 'tls-'))
const { caFile, keyFile, certFile } = makeCertificate(folder)
const identity = { key: readFileSync(keyFile), cert: readFileSync(certFile) }
// A Redis without TLS, in each world.
const [redis, database] = [await ownRedis(), await testDatabase()]

/** TLS in front of a server on loopback, as each server does it: Redis at once, PostgreSQL after a request. */
async function startTls(url: string, isPostgres: boolean): Promise<number> {
  const target = new URL(url)
  const join = (client: TLSSocket) => {
    const server = connect(Number(target.port), '127.0.0.1')
    for (const socket of [client, server]) socket.on('error', () => {})
    client.pipe(server).pipe(client)
    client.on('close', () => server.destroy())
    server.on('close', () => client.destroy())
  }
  const listener = isPostgres
    ? createTcpServer((socket) => {
        socket.on('error', () => {})
        // The eight bytes of an SSLRequest.
        socket.once('data', () => {
          socket.write('S')
          join(new TLSSocket(socket, { isServer: true, ...identity }))
        })
      })
    : createTlsServer(identity, join).on('tlsClientError', () => {})
  return Number(new URL(await listen(listener)).port)
}

async function settings(): Promise<Record<string, string>> {
  const smtp = await startSmtp({ secure: true, ...identity })
  const [redisPort, postgresPort] = await Promise.all([
    startTls(redis.url, false),
    startTls(database.url, true),
  ])
  const redisUrl = new URL(redis.url.replace('redis:', 'rediss:'))
  redisUrl.port = String(redisPort)
  const postgresUrl = new URL(database.url)
  postgresUrl.port = String(postgresPort)
  postgresUrl.searchParams.set('sslmode', 'verify-full')
  const providers = {
    mail: { kind: 'smtp', url: smtp.url, from: 'no-reply@acme.test' },
    box: { kind: 'sandbox' },
  }
  const routes = { email: [{ use: ['mail'] }], sms: [{ use: ['box'] }] }
  return posternEnv({
    redis: { url: redisUrl.href },
    database: { url: postgresUrl.href },
    policyFile: { providers, routes },
  })
}

test('PostgreSQL, Redis and SMTP of a private authority: out of reach without CA_FILE, in order with it', async () => {
  const { CA_FILE: _, ...env } = await settings()
  const examined = async (more: Record<string, string>, cwd?: string) => {
    const { stdout } = await runCommand('doctor', ['--json'], { ...env, ...more }, cwd)
    const found = JSON.parse(stdout) as { subject: string; state: string; [name: string]: string }[]
    return ['postgresql', 'redis', 'provider mail'].map((subject) =>
      found.find((one) => one.subject === subject),
    )
  }
  const place = mkdtempSync(join(inject('runFolder'), 'ca-'))
  writeFileSync(join(place, '.env'), `CA_FILE=${caFile}\n`)
  const isOk = expect.objectContaining({ state: 'ok' })
  const message = 'postgresql has a certificate that is not trusted; check CA_FILE'
  const untrusted = [
    { state: 'error', message },
    { state: 'error', advice: expect.stringMatching(/^the connection fails with \w*SIGNATURE; /) },
    { state: 'error' },
  ]
  // To a busy machine, each server can be out of reach for a while.
  const withinMs = 150_000
  await eventually(async () => expect(await examined({})).toMatchObject(untrusted), { withinMs })
  for (const [more, cwd] of [[{ CA_FILE: caFile }], [{}, place]] as const) {
    const found = async () => expect(await examined(more, cwd)).toEqual([isOk, isOk, isOk])
    await eventually(found, { withinMs })
  }
})

test.each([
  ['is not there', 'ENOENT', 'nothing.pem'],
  ['holds no certificate', 'no certificate in PEM', 'server.key'],
])('a CA_FILE that %s stops a command with one line', async (_, reason, name) => {
  const env = { DATABASE_URL: database.url, CA_FILE: join(folder, name) }
  expect(await runCommand('migrate', [], env)).toEqual({
    code: 1,
    stdout: '',
    stderr: `Postern cannot start: CA_FILE cannot be read (${reason}).\n`,
  })
})
