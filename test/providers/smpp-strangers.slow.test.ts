/**
 * SMPP with the programs of other people as SMSCs: Net::SMPP of Perl, and Kannel's `drive_smpp`. Both are of Debian.
 * `npm run judges` runs all settings, and an SMSC that hangs.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findFreePort, readIfThere, startServerProcess } from '../../src/dev/server-process.ts'
import { findProgram, isOpen, serverFolder, startDebianServer } from '../tools/debian-server.ts'
import { noLimits, type Postern, startPostern } from '../tools/postern.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const isFull = process.env.JUDGES === 'full'

/** Both have three parts in their alphabet. The escape of `€` and the halves of `😀` are at the ends of parts. */
const texts = {
  gsm: `${'a€'.repeat(120)}[ñ] {Ω} ~^|\\ @£ §`,
  ucs: `${'您的验证码😀'.repeat(22)} é`,
} as const

const templates = serverFolder('templates')
for (const [name, text] of Object.entries(texts)) {
  mkdirSync(join(templates, name))
  writeFileSync(join(templates, name, 'sms.en.txt'), text)
}

const startWith = (settings: Record<string, unknown>) =>
  startPostern({
    policyFile: {
      policies: noLimits,
      browser: { templates: [] },
      templates,
      providers: { carrier: { kind: 'smpp', from: 'Acme', ...settings } },
      routes: { sms: [{ use: ['carrier'] }], email: [] },
      delivery: { timeout: '2s' },
    },
  })

const send = async (postern: Postern, template: string, to: string) => {
  const { status, body } = await postern.post('/v1/notices', { channel: 'sms', to, template })
  expect(status).toBe(202)
  return body.id as string
}

const stateOf = async (postern: Postern, id: string) =>
  (await postern.get(`/v1/notices/${id}`)).body.state

interface Heard {
  what: string
  role?: string
  to?: string
  text?: string
  [fact: string]: unknown
}

async function startNetSmpp(receiptIds: string) {
  findProgram('/usr/share/perl5/Net/SMPP.pm', 'libnet-smpp-perl')
  const folder = serverFolder('net-smpp')
  const [log, port] = [join(folder, 'heard.jsonl'), await findFreePort()]
  const script = join(import.meta.dirname, 'far-ends/net-smpp.pl')
  const command = ['perl', script, String(port), receiptIds, log] as const
  await startDebianServer(folder, [...command], () => isOpen(port))
  const heard = (what: string): Heard[] =>
    readIfThere(log)
      .split('\n')
      .flatMap((line) => (line.endsWith('}') ? [JSON.parse(line)] : []))
      .filter((one: Heard) => one.what === what)
  return { url: `smpp://postern:pass%20word@127.0.0.1:${port}`, heard }
}

const allSettings = [
  { bind: 'separate', longTexts: 'segments', receiptIds: 'decimal' },
  { bind: 'transceiver', longTexts: 'segments', receiptIds: 'same' },
  { bind: 'separate', longTexts: 'payload', receiptIds: 'same' },
]

const [fails, hangs] = [3, 5]
/** Numbers by their last digit, see net-smpp.pl. */
const habits = [0, 1, 2, 3, 4, 6, 7, 8, 9, ...(isFull ? [hangs] : [])]

test.each(isFull ? allSettings : allSettings.slice(0, 1))(
  'Net::SMPP, $bind, $longTexts, ids $receiptIds: texts arrive whole and once, receipts are read, and a throttle, a silence and an unbind cost no message',
  async (settings) => {
    const { url, heard } = await startNetSmpp(settings.receiptIds)
    const enquireEvery = '300ms'
    const postern = await startWith({ url, systemType: 'VMA', enquireEvery, ...settings })
    const people = habits.map((habit) => `+861380013800${habit}`)
    const sent = await Promise.all(
      people.flatMap((to) =>
        Object.entries(texts).map(async ([template, text]) => ({
          ...{ to, text },
          id: await send(postern, template, to),
          state: to.endsWith(String(fails)) ? 'failed' : 'delivered',
        })),
      ),
    )
    for (const { id, to, state } of sent) {
      await eventually(async () =>
        expect(`${to} ${await stateOf(postern, id)}`).toBe(`${to} ${state}`),
      )
    }
    const arrived = heard('message').map(({ to, text }) => `+${to} ${text}`)
    expect(arrived.sort()).toEqual(sent.map(({ to, text }) => `${to} ${text}`).sort())
    for (const { text, coding, parts, from, valid } of heard('message')) {
      expect({ coding, parts, from }).toEqual({
        coding: text === texts.gsm ? 0 : 8,
        parts: settings.longTexts === 'payload' ? 1 : 3,
        from: 'Acme',
      })
      expect(valid).toMatch(/^\d{12}000R$/)
    }
    expect(heard('throttled').length).toBeGreaterThan(0)
    expect(heard('hangs').length).toBe(isFull ? 1 : 0)
    expect(heard('enquire_link').length).toBeGreaterThan(0)
    await eventually(() => heard('enquire_link_resp').length > 0)
    expect(heard('deliver_sm_resp').every(({ status }) => status === 0)).toBe(true)
    expect(heard('generic_nack')).toEqual([])
    for (const { id, type } of heard('bind')) expect([id, type]).toEqual(['postern', 'VMA'])
    await postern.stop()
    const roles = settings.bind === 'separate' ? ['receiver', 'transmitter'] : ['transceiver']
    const unbound = heard('unbind').map(({ role }) => role)
    expect(unbound.sort()).toEqual(roles)
  },
)

/**
 * The program also plays a box of Kannel's, which ends if nothing listens on this port. Another run may listen
 * already.
 */
async function startBearerbox(): Promise<void> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => sockets.add(socket.on('error', () => {})))
  const isOpen = new Promise((resolve) => server.on('listening', resolve).on('error', resolve))
  server.listen(13_001, '127.0.0.1')
  await isOpen
  releaseLater(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
}

test("Kannel's drive_smpp, transmitter and receiver apart: it gets every part, its messages and enquiries are answered, and it ends content", async () => {
  findProgram('/usr/lib/kannel/test/drive_smpp', 'kannel-extras')
  const folder = serverFolder('kannel')
  const port = await findFreePort()
  await startBearerbox()
  const log = join(folder, 'log')
  const parts = 6
  const drive = startServerProcess(
    ['/usr/lib/kannel/test/drive_smpp', '-p', String(port), '-m', String(parts)],
    log,
    'SIGTERM',
  )
  releaseLater(() => drive.stop())
  const postern = await startWith({
    url: `smpp://foo:bar@127.0.0.1:${port}`,
    bind: 'separate',
    systemType: 'VMA',
    enquireEvery: '300ms',
  })
  await eventually(() => readIfThere(log).includes('type bind_receiver\n'))
  for (const template of Object.keys(texts)) {
    const id = await send(postern, template, '+8613800138000')
    await eventually(async () => expect(await stateOf(postern, id)).toBe('sent'))
  }
  await eventually(() => readIfThere(log).includes('Handling SMPP PDU of type enquire_link\n'))
  await postern.stop()
  await eventually(() => drive.hasExited())
  const said = readIfThere(log)
  expect(said).not.toMatch(/PANIC|ERROR|WARNING/)
  expect(said).toMatch(/Program exiting normally/)
  expect(said).toMatch(new RegExp(`messages sent to SMSC: ${parts}\n`))
  expect(said).toMatch(new RegExp(`messages sent to ESME: ${parts}\n`))
  const answers = (name: string) => said.split(`type ${name}\n`).length - 1
  expect([answers('deliver_sm_resp'), answers('enquire_link_resp')]).toEqual([parts, parts])
})
