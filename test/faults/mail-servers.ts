/** Real mail servers on a bad day. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { expect } from 'vitest'
import { type MailServerKind, startMailServer } from '../tools/mail-servers.ts'
import { noLimits, type Postern, startPostern } from '../tools/postern.ts'
import { releaseLater } from '../tools/release.ts'
import { startSmtp, type TestSmtp } from '../tools/smtp.ts'
import { eventually } from '../tools/wait.ts'
import type { Fault, Lab } from './fault.ts'

/**
 * One of three connections to `target` gets 421 in place of a greeting. Another gets nonsense in place of a TLS
 * handshake.
 */
async function startBadDoor(lab: Lab, target: number): Promise<number> {
  const sockets = new Set<Socket>()
  const pipe = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on('error', () => {})
    from.on('close', () => {
      sockets.delete(from)
      to.destroySoon()
    })
    from.pipe(to)
  }
  const door = createServer((client) => {
    const mood = lab.pick(['well', 'busy', 'broken'] as const)
    if (mood === 'busy') return void client.on('error', () => {}).end('421 4.3.2 Too busy\r\n')
    const server = connect(target, '127.0.0.1')
    pipe(client, server)
    pipe(server, client)
    if (mood === 'well') return
    client.on('data', (bytes) => {
      // The first byte of a handshake.
      if (bytes[0] === 0x16) client.end('no handshake\r\n')
    })
  })
  door.listen(0, '127.0.0.1')
  await once(door, 'listening')
  releaseLater(() => {
    for (const socket of sockets) socket.destroy()
    door.close()
  })
  return (door.address() as AddressInfo).port
}

/** One of four recipients is greylisted for `greyMs`. One of twenty gets 421 at the first attempt. */
function createJudge(lab: Lab, greyMs: number) {
  const known = new Map<string, { mood: number; sinceMs: number }>()
  return (recipient: string) => {
    const nowMs = performance.now()
    const first = known.get(recipient)
    const { mood, sinceMs } = first ?? { mood: lab.between(0, 20), sinceMs: nowMs }
    known.set(recipient, { mood, sinceMs })
    if (mood < 5) return nowMs - sinceMs < greyMs ? '450 4.7.1 Greylisted' : undefined
    return mood === 5 && !first ? '421 4.3.2 Shutting down' : undefined
  }
}

async function throughBadDay(kind: MailServerKind, lab: Lab): Promise<void> {
  const mails = lab.length(60, 1_000)
  const next = await startSmtp()
  const judge = createJudge(lab, lab.length(1_000, 20_000))
  const server = await startMailServer(kind, next.port, judge)
  const url = `smtp://127.0.0.1:${await startBadDoor(lab, server.port)}?tls=required`
  trust(server.caFile)
  // No part of Postern is broken here, so one process is enough.
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      providers: { mail: { kind: 'smtp', url, from: 'Acme <no-reply@acme.test>' } },
      routes: { email: [{ use: ['mail'] }], sms: [] },
    },
  })
  const ids = new Set<string>()
  let restarted: Promise<void> | undefined
  for (let mail = 0; mail < mails; mail++) {
    const to = `user${mail}@example.test`
    const reply = await postern.post('/v1/captchas', { channel: 'email', to })
    expect(reply.status).toBe(202)
    ids.add(reply.body.id)
    if (mail === mails >> 1) restarted = restart(server, lab.length(500, 5_000))
    await sleep(lab.length(10, 50))
  }
  await restarted
  await expectAllSent(postern, ids)
  // It was a bad day.
  for (const sign of [/\b450 4\.7\.1 /, /\b421 4\.3\.2 /]) expect(server.log()).toMatch(sign)
  const doubled = await countDoubles(next, ids)
  if (lab.isFull) console.log(`${kind}: ${mails} mails, ${doubled} twice`)
  expect(doubled).toBeLessThanOrEqual(Math.ceil(mails * 0.005))
}

/** Certificates of this authority are valid until the end of the test. */
function trust(caFile: string): void {
  const usual = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...usual, readFileSync(caFile, 'utf8')])
  releaseLater(() => tls.setDefaultCACertificates(usual))
}

async function restart(server: { stop(): Promise<void>; start(): Promise<void> }, awayMs: number) {
  await server.stop()
  await sleep(awayMs)
  await server.start()
}

async function expectAllSent({ database }: Postern, ids: ReadonlySet<string>): Promise<void> {
  const states = 'SELECT state, count(*)::int AS mails FROM notice GROUP BY state'
  await eventually(
    async () =>
      expect((await database.pool.query(states)).rows).toEqual([
        { state: 'sent', mails: ids.size },
      ]),
    { withinMs: 120_000, everyMs: 200 },
  )
}

/** The number of mails that arrived more than once. Throws if a mail never arrived. */
async function countDoubles({ mails }: TestSmtp, ids: ReadonlySet<string>): Promise<number> {
  const arrived = () =>
    mails.map(({ messageId = '' }) => messageId.slice(1, messageId.indexOf('@')))
  await eventually(() => expect(new Set(arrived())).toEqual(ids), {
    withinMs: 60_000,
    everyMs: 200,
  })
  return arrived().length - ids.size
}

const f41: Fault = {
  id: 'F41',
  breaks:
    'Postfix and Exim with 421s, greylisting, broken TLS, and a restart in between (in short: Postfix alone)',
  holds: 'every mail arrives, and at most one of two hundred twice',
  proves: 'I1, I8, I29, I30',
  async prove(lab) {
    await throughBadDay('postfix', lab)
    if (lab.isFull) await throughBadDay('exim', lab)
    return undefined
  },
}

export const mailServerFaults: readonly Fault[] = [f41]
