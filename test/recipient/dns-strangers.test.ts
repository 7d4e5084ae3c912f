/** A name server that misbehaves refuses no send, delays none for long, and its look-up ends. */
import { expect, test } from 'vitest'
import { createDnsResolver, createMailDomains } from '../../src/recipient/mail-domains.ts'
import { type DnsForgery, startDns, useDns } from '../tools/dns.ts'
import {
  dnsOverTcp,
  type Misbehaviour,
  startMisbehavingServer,
} from '../tools/misbehaving-server.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const changed = (message: Buffer, change: (copy: Buffer) => void) => {
  const copy = Buffer.from(message)
  change(copy)
  return copy
}
const otherId = (message: Buffer, by = 1) =>
  changed(message, (copy) => copy.writeUInt16BE((copy.readUInt16BE(0) + by) & 0xffff, 0))

const forgeries: Record<string, DnsForgery['forge']> = {
  'no such name, under another id': (reply) => [otherId(reply)],
  'no such name, for another name': (reply) => [changed(reply, (copy) => copy.write('x', 13))],
  'a flood of 5,000 answers under other ids': (reply) =>
    Array.from({ length: 5_000 }, (_, nth) => otherId(reply, 1 + nth)),
  'a head without the rest': (reply) => [reply.subarray(0, 12)],
  'one byte': () => [Buffer.from('x')],
  '65,535 records announced, none sent': (reply) => [
    changed(reply, (copy) => {
      copy.writeUInt16BE(0x8180, 2)
      copy.writeUInt16BE(65_535, 6)
    }),
  ],
  'a record longer than its datagram': (reply) => [
    changed(Buffer.concat([reply, Buffer.from('c00c000f00010000003cffff000a', 'hex')]), (copy) => {
      copy.writeUInt16BE(0x8180, 2)
      copy.writeUInt16BE(1, 6)
    }),
  ],
  'a name that points at itself': (reply) => [
    changed(
      Buffer.concat([
        reply,
        Buffer.from('c00c000f00010000003c0004000a', 'hex'),
        Buffer.from([0xc0, reply.length + 14]),
      ]),
      (copy) => {
        copy.writeUInt16BE(0x8180, 2)
        copy.writeUInt16BE(1, 6)
      },
    ),
  ],
}

const resolverMs = 150

/** A short wait for a send, and the whole look-up beside it: neither is a clear no. */
async function expectNoClearNo() {
  const domains = createMailDomains({ waitMs: 50, resolver: createDnsResolver(resolverMs) })
  releaseLater(domains.close)
  const [takesMail, records] = await Promise.allSettled([
    domains.takesMail('shop', 'acme.test'),
    createDnsResolver(resolverMs).resolveMx('acme.test'),
  ])
  expect(takesMail).toEqual({ status: 'fulfilled', value: true })
  expect(records.status).toBe('rejected')
  expect(records).not.toMatchObject({ reason: { code: 'ENOTFOUND' } })
}

test.each(Object.entries(forgeries))('%s → the send is let through', async (_, forge) => {
  useDns(await startDns({ 'acme.test': { forge } }))
  await expectNoClearNo()
})

const truncate: DnsForgery['forge'] = (reply) => [
  changed(reply, (copy) => copy.writeUInt16BE(0x8380, 2)),
]

test.each<[string, Misbehaviour]>([
  ['answers to other questions without end', 'endless'],
  ['empty messages without end', 'crumbs'],
  ['answers without end before the question', 'floods'],
  ['no byte is read', 'never reads'],
  ['an end before the answer', 'half closes'],
  ['less than announced', 'lies about the length'],
  ['more than announced', 'sends more than it announces'],
])(
  'truncated, and over TCP %s → the send is let through, and the look-up ends',
  async (_, misbehaviour) => {
    const server = await startMisbehavingServer(dnsOverTcp, misbehaviour)
    useDns(await startDns({ 'acme.test': { forge: truncate } }, server.port))
    await expectNoClearNo()
    expect(server.connections.total).toBeGreaterThan(0)
    // A server that reads nothing does not notice the end.
    if (misbehaviour !== 'never reads') await eventually(() => server.connections.open === 0)
  },
)

test('truncated, and over TCP a good answer, one byte at a time → that answer', async () => {
  const server = await startMisbehavingServer(dnsOverTcp, 'slow')
  useDns(await startDns({ 'acme.test': { forge: truncate } }, server.port))
  const domains = createMailDomains({ waitMs: 20_000 })
  releaseLater(domains.close)
  expect(await domains.takesMail('shop', 'acme.test')).toBe(false)
})
