import smppPackage, { type SmppPdu } from 'smpp'
import { describe, expect, it, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { type Receipt, unreadable } from '../../src/base/receipt.ts'
import type { ProviderDeps } from '../../src/providers/provider-kind.ts'
import { resultOfStatus } from '../../src/providers/smpp/errors.ts'
import {
  command,
  createPduReader,
  decodeDelivered,
  encodePdu,
  encodeShortMessage,
} from '../../src/providers/smpp/pdu.ts'
import { encodeSegments } from '../../src/providers/smpp/text.ts'
import { beBusy } from '../tools/be-busy.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import smpp, * as given from './cases/smpp.ts'
import { makeCertificate, trust } from './far-ends/certificate.ts'
import { startSmppFarEnd } from './far-ends/smpp.ts'
import { testConformance } from './test-conformance.ts'

const { message } = given.conformance
const never = new AbortController().signal

testConformance(given)

describe('smpp', () => {
  async function start(
    options: Parameters<typeof startSmppFarEnd>[0] = {},
    entry: Record<string, unknown> = {},
    deps: Partial<ProviderDeps> = {},
  ) {
    const farEnd = await startSmppFarEnd(options)
    const at = `://postern:pass@127.0.0.1:${farEnd.port}`
    const url = `${options.key ? 'smpps' : 'smpp'}${at}`
    const settings = smpp.settings.parse({ url, from: 'Acme', ...entry })
    const usual = { timeoutMs: 20_000, concurrency: 100, clock: Date.now }
    const provider = smpp.create('smsc', settings, { ...usual, ...deps })
    releaseLater(farEnd.close)
    releaseLater(provider.close)
    /** From now on, the first session reads nothing. */
    const deafen = () => farEnd.sessions[0]?.socket.removeAllListeners('readable')
    const send = (text: string, signal = never) =>
      provider.send({ ...message, noticeId: newId(), text }, signal)
    return { farEnd, provider, send, deafen }
  }

  it('binds with its id, sends in the default alphabet, returns the id of the SMSC', async () => {
    const { farEnd, send } = await start({}, { systemType: 'CP' })
    expect(await send('Price: 5 €, @home_{1}')).toEqual({ kind: 'accepted', messageId: 'smsc-1' })
    expect(farEnd.binds[0]).toMatchObject({ system_id: 'postern', system_type: 'CP' })
    expect(farEnd.submits[0]).toMatchObject({
      source_addr: 'Acme',
      source_addr_ton: 5,
      destination_addr: '447700900123',
      dest_addr_ton: 1,
      data_coding: 0,
      esm_class: 0,
      registered_delivery: 1,
      short_message: { message: 'Price: 5 €, @home_{1}' },
    })
  })

  it('writes the type of number and the numbering plan that the operator wants', async () => {
    const entry = { source: { ton: 0, npi: 8 }, destination: { ton: 2 } }
    const { farEnd, send } = await start({}, entry)
    await send('hello')
    expect(farEnd.submits[0]).toMatchObject({
      ...{ source_addr_ton: 0, source_addr_npi: 8, dest_addr_ton: 2, dest_addr_npi: 1 },
    })
  })

  /** The validity as the far end reads it, from its current time. */
  const validSeconds = ({ validity_period: until }: SmppPdu) =>
    until instanceof Date ? (until.getTime() - Date.now()) / 1_000 : until

  it.each([
    [299_500, 299],
    [90_061_500, 90_061],
    [400, 1],
    [-5_000, 1],
    [40 * 86_400_000, 28 * 86_400],
  ])(
    'gives each part of a message with %d ms left a validity of %d s',
    async (leftMs, expected) => {
      const { farEnd, provider } = await start()
      const sent = { ...message, noticeId: newId(), text: 'a'.repeat(200) }
      await provider.send({ ...sent, endsAtMs: performance.now() + leftMs }, never)
      expect(farEnd.submits).toHaveLength(2)
      for (const seconds of farEnd.submits.map(validSeconds)) {
        expect(seconds).toBeLessThanOrEqual(expected)
        expect(seconds).toBeGreaterThan(expected - 10)
      }
    },
  )

  it('says nothing of it for a message without end, and where the SMSC refuses it', async () => {
    const { farEnd, send } = await start()
    await send('hello')
    const other = await start({}, { validity: 'none' })
    const ending = { ...message, noticeId: newId(), endsAtMs: performance.now() + 60_000 }
    await other.provider.send(ending, never)
    expect([...farEnd.submits, ...other.farEnd.submits].map(validSeconds)).toEqual(['', ''])
  })

  describe('with transmitter and receiver apart', () => {
    const apart = { bind: 'separate' }

    it('sends over the one, takes receipts over the other, and closes both', async () => {
      const receipts: Receipt[] = []
      const onReceipt = async (_: string, receipt: Receipt) => void receipts.push(receipt)
      const { farEnd, provider, send } = await start({ knows: 'separate' }, apart, { onReceipt })
      await eventually(() => farEnd.binds.length === 1)
      expect(await send('hello')).toEqual({ kind: 'accepted', messageId: 'smsc-1' })
      expect(farEnd.binds.map(({ command }) => command)).toEqual([
        'bind_receiver',
        'bind_transmitter',
      ])
      const short_message = 'id:smsc-1 stat:DELIVRD err:000'
      await new Promise((resolve) =>
        farEnd.sessions[0]?.deliver_sm({ esm_class: 4, short_message }, resolve),
      )
      expect(receipts).toEqual([{ messageId: 'smsc-1', outcome: 'delivered', detail: 'DELIVRD' }])
      await provider.close()
      await eventually(() => farEnd.openConnections() === 0)
    })

    it('binds each anew when it ended, the receiver though nothing is sent (I12)', async () => {
      const onReceipt = async () => {}
      const { farEnd, send } = await start({ knows: 'separate' }, apart, { onReceipt })
      await eventually(() => farEnd.binds.length === 1)
      await send('one')
      for (const { socket } of [...farEnd.sessions]) socket.destroy()
      await eventually(() => farEnd.binds.length === 3)
      expect(farEnd.binds[2]?.command).toBe('bind_receiver')
      expect((await send('two')).kind).toBe('accepted')
      expect(farEnd.binds[3]?.command).toBe('bind_transmitter')
    })

    it('the SMSC refuses the receiver: messages go over the transmitter', async () => {
      const options = { knows: 'separate', refusedReceivers: 100 } as const
      const { farEnd, send } = await start(options, apart, { onReceipt: async () => {} })
      await eventually(() => farEnd.openConnections() === 0 && farEnd.binds.length === 1)
      expect(await send('one')).toMatchObject({ kind: 'accepted' })
    })

    it('without receipts binds the transmitter alone', async () => {
      const { farEnd, send } = await start({ knows: 'separate' }, apart)
      expect((await send('one')).kind).toBe('accepted')
      expect(farEnd.binds.map(({ command }) => command)).toEqual(['bind_transmitter'])
    })

    it('an SMSC that knows no transceivers refuses one, and the doctor hears it of either role', async () => {
      const { farEnd, send } = await start({ knows: 'separate' })
      expect(await send('one')).toMatchObject({ kind: 'unavailable' })
      const url = `smpp://postern:pass@127.0.0.1:${farEnd.port}`
      const probe = (entry: object) =>
        smpp.probe?.(smpp.settings.parse({ url, from: 'Acme', ...entry }), 2_000)
      expect(await probe({})).toMatch(/^SMPP bind refused/)
      expect(await probe(apart)).toBe(undefined)
      expect(farEnd.binds.map(({ command }) => command)).toEqual([
        'bind_transmitter',
        'bind_receiver',
      ])
    })
  })

  it.each([
    ['gsm', '@ # $ _ { }', 0, '00202320022011201b28201b29'],
    ['latin1', '@ # $ _ { } é', 0, '402023202420 5f207b207d20e9'],
    ['ascii', '@ # $ _ { }', 0, '4020232024205f207b207d'],
    ['latin1', 'Δ', 8, '0394'],
    ['latin1', '5 €', 8, '0035002020ac'],
    ['ascii', 'é', 8, '00e9'],
    ['latin1', 'ç', 8, '00e7'],
    ['ucs2', 'a', 8, '0061'],
  ])(
    'an SMSC with the default alphabet %s: %s → data coding %i',
    async (alphabet, text, dataCoding, hex) => {
      const { farEnd, provider } = await start({}, { alphabet })
      const settings = smpp.settings.parse({ url: 'smpp://host', from: 'Acme', alphabet })
      const { contents } = encodeSegments(text, 1, settings.alphabet)
      expect(contents.map((content) => content.toString('hex'))).toEqual([hex.replaceAll(' ', '')])
      await provider.send({ ...message, noticeId: newId(), text }, never)
      expect(farEnd.submits[0]?.data_coding).toBe(dataCoding)
    },
  )

  it('a long text of Latin-1 is cut where phones cut it', async () => {
    const { farEnd, send } = await start({}, { alphabet: 'latin1' })
    await send('{'.repeat(100))
    expect(farEnd.submits).toHaveLength(2)
    await send('ç'.repeat(100))
    expect(farEnd.submits).toHaveLength(4)
  })

  it('sends what the alphabet lacks as UCS-2', async () => {
    const { farEnd, send } = await start()
    await send('您的验证码是738291 😀')
    expect(farEnd.submits[0]).toMatchObject({
      data_coding: 8,
      short_message: { message: '您的验证码是738291 😀' },
    })
  })

  it.each([
    ['GSM-7', 'a€'.repeat(200), 4],
    ['UCS-2', '验证码😀'.repeat(50), 4],
  ])('cuts a long text in %s and joins it by one header', async (_name, text, parts) => {
    const { farEnd, send } = await start()
    expect(await send(text)).toEqual({ kind: 'accepted', messageId: `smsc-${parts}` })
    expect(farEnd.submits).toHaveLength(parts)
    const headers = farEnd.submits.map(({ short_message }) => short_message.udh?.[0])
    const reference = headers[0]?.[2]
    expect(headers.map((header) => [...(header ?? [])])).toEqual(
      Array.from({ length: parts }, (_, index) => [0, 3, reference, parts, index + 1]),
    )
    expect(farEnd.submits.every(({ esm_class }) => esm_class === 0x40)).toBe(true)
    expect(farEnd.submits.map(({ short_message }) => short_message.message).join('')).toBe(text)
    const asked = farEnd.submits.map(({ registered_delivery }) => registered_delivery)
    expect(asked).toEqual([...Array(parts - 1).fill(0), 1])
  })

  it('leaves the cutting to the SMSC where the settings say so', async () => {
    const { farEnd, send } = await start({}, { longTexts: 'payload' })
    await send('a'.repeat(400))
    expect(farEnd.submits).toHaveLength(1)
    expect(farEnd.submits[0]?.message_payload?.message).toBe('a'.repeat(400))
  })

  it('rejects a text of more parts than the header can count', async () => {
    const { farEnd, send } = await start()
    expect((await send('a'.repeat(255 * 153 + 1))).kind).toBe('rejected')
    expect(farEnd.openConnections()).toBe(0)
  })

  it('answers unknown when only part of a long text was taken', async () => {
    const { farEnd, send } = await start()
    farEnd.refuse(0x0b, 2)
    expect((await send('a'.repeat(400))).kind).toBe('unknown')
    farEnd.refuse(0x0b)
    expect((await send('a'.repeat(400))).kind).toBe('invalid_recipient')
  })

  it('throttled at the first part: nothing was taken; at a later part: only this part is sent again', async () => {
    const { farEnd, send } = await start()
    farEnd.refuse(0x58)
    expect(await send('a'.repeat(400))).toMatchObject({ kind: 'throttled' })
    expect(farEnd.submits).toHaveLength(1)
    farEnd.refuse(0x58, 3)
    const sent = send('b'.repeat(400))
    await eventually(() => farEnd.submits.length === 4)
    farEnd.refuse(0)
    expect(await sent).toMatchObject({ kind: 'accepted' })
    const parts = farEnd.submits.slice(1).map(({ short_message }) => short_message.udh?.[0]?.[4])
    expect(parts).toEqual([1, 2, 3, 3])
  })

  it('answers unavailable when the bind hangs, and unknown when the answer does (F15)', async () => {
    const { send, deafen } = await start()
    await send('bound')
    deafen()
    expect((await send('not answered', AbortSignal.timeout(500))).kind).toBe('unknown')
    const other = await start()
    await other.farEnd.behave('hang')
    expect((await other.send('not bound', AbortSignal.timeout(500))).kind).toBe('unavailable')
  })

  it('says not taken for what the full window kept back (F15)', async () => {
    const { send, deafen } = await start({}, { window: 2 })
    await send('bound')
    deafen()
    const signal = AbortSignal.timeout(500)
    const kinds = await Promise.all(
      ['1', '2', '3', '4'].map(async (t) => (await send(t, signal)).kind),
    )
    expect(kinds).toEqual(['unknown', 'unknown', 'unavailable', 'unavailable'])
  })

  it('sends on as the window frees, whoever gave up waiting', async () => {
    const { farEnd, send } = await start({}, { window: 1 })
    const texts = Array.from({ length: 20 }, (_, index) => `${index}`)
    const results = await Promise.all(
      texts.map((text, index) => send(text, index % 3 ? never : AbortSignal.timeout(1))),
    )
    const patient = results.filter((_, index) => index % 3)
    expect(patient.every(({ kind }) => kind === 'accepted')).toBe(true)
    expect(farEnd.submits.length).toBeGreaterThanOrEqual(13)
  })

  it('answers unavailable without the password when the bind is refused', async () => {
    const { send } = await start({ password: 'another' })
    expect(await send('hello')).toEqual({
      kind: 'unavailable',
      detail: 'SMPP bind refused with status 0x0000000e',
    })
  })

  it('a refused bind → no other bind for seconds, however much is sent', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout')
    const { farEnd, send } = await start({ password: 'another' }, {}, { onReceipt: async () => {} })
    const results = []
    for (let n = 0; n < 10; n++) results.push(await send('hello'))
    const refused = { kind: 'unavailable', detail: 'SMPP bind refused with status 0x0000000e' }
    expect(new Set(results.map((result) => JSON.stringify(result)))).toEqual(
      new Set([JSON.stringify(refused)]),
    )
    expect(farEnd.openConnections()).toBeLessThanOrEqual(1)
    expect(farEnd.binds).toHaveLength(1)
    const waits = timers.mock.calls.map(([, ms]) => ms ?? 0)
    expect(waits.some((ms) => ms > 1_500 && ms <= 5_000)).toBe(true)
    expect(waits).not.toContain(1_000)
  })

  it('an answer after the time limit of the connection, within that of answers → accepted', async () => {
    const answer = () => new Promise<void>((resolve) => setTimeout(resolve, 600))
    const { send } = await start({ answer }, {}, { timeoutMs: 300, answerMs: 20_000 })
    expect(await send('hello')).toMatchObject({ kind: 'accepted' })
  })

  it('binds anew after the SMSC has unbound it', async () => {
    const { farEnd, send } = await start()
    await send('one')
    const ended = new Promise((resolve) => farEnd.sessions[0]?.unbind(resolve))
    await ended
    expect((await send('two')).kind).toBe('accepted')
    expect(farEnd.binds).toHaveLength(2)
  })

  it('an SMSC that unbinds first answers what it took: that counts, and nothing more goes over this session', async () => {
    const held: (() => void)[] = []
    const answer = () => new Promise<void>((resolve) => held.push(resolve))
    const { farEnd, send } = await start({ answer }, { window: 2 })
    const taken = [send('1'), send('2')]
    await eventually(() => held.length === 2)
    const waiting = send('3')
    const unbound = new Promise((resolve) => farEnd.sessions[0]?.unbind(resolve))
    expect(await waiting).toEqual({ kind: 'unavailable', detail: 'SMPP unbound' })
    const later = send('4')
    await eventually(() => held.length === 3)
    expect(farEnd.binds).toHaveLength(2)
    for (const release of held) release()
    const kinds = (await Promise.all([...taken, later])).map(({ kind }) => kind)
    expect(kinds).toEqual(['accepted', 'accepted', 'accepted'])
    await unbound
  })

  it('asks whether an idle SMSC is still there, and leaves one that is not', async () => {
    const { farEnd, send, deafen } = await start({}, { enquireEvery: '50ms' }, { timeoutMs: 100 })
    await send('one')
    await new Promise((resolve) => farEnd.sessions[0]?.on('enquire_link', resolve))
    deafen()
    // A socket that is not read never reports its end. The next message shows that the provider has moved on.
    await eventually(async () => {
      await send('two')
      return farEnd.binds.length === 2
    })
  })

  it('keeps a session whose answer arrived while this process was busy', async () => {
    const { farEnd, send } = await start({}, { enquireEvery: '50ms' }, { timeoutMs: 1_000 })
    await send('one')
    let asked = 0
    farEnd.sessions[0]?.on('enquire_link', () => {
      if (asked++ === 0) beBusy(1_200)
    })
    await eventually(() => asked === 2)
    await send('two')
    expect(farEnd.binds).toHaveLength(1)
  })

  it('answers enquire_link, and commands it does not know with generic_nack', async () => {
    const { farEnd, send } = await start()
    await send('one')
    const session = farEnd.sessions[0]
    const answer = await new Promise((resolve) => session?.enquire_link(resolve))
    expect(answer).toMatchObject({ command: 'enquire_link_resp', command_status: 0 })
    const nack = new Promise((resolve) => session?.on('generic_nack', resolve))
    session?.send(new smppPackage.PDU('query_sm', { message_id: 'x' }))
    expect(await nack).toMatchObject({ command_status: 3 })
  })

  it('alert_notification has no answer, and the session goes on (4.12)', async () => {
    const { farEnd, send } = await start()
    await send('one')
    const heard: string[] = []
    farEnd.sessions[0]?.on('pdu', ({ command }: SmppPdu) => heard.push(command))
    const addresses = { source_addr: '447700900123', esme_addr: 'Acme' }
    farEnd.sessions[0]?.send(new smppPackage.PDU('alert_notification', addresses))
    const answer = await new Promise((resolve) => farEnd.sessions[0]?.enquire_link(resolve))
    expect(answer).toMatchObject({ command_status: 0 })
    expect(heard).toEqual(['enquire_link_resp'])
  })

  it('talks TLS to smpps://', async () => {
    const certificate = makeCertificate()
    trust(certificate)
    const { farEnd, send } = await start(certificate, { from: '+447700900000' })
    expect((await send('hello')).kind).toBe('accepted')
    expect(farEnd.submits[0]).toMatchObject({ source_addr: '447700900000', source_addr_ton: 1 })
  })

  it.each([
    { url: 'http://host', from: 'Acme' },
    { url: 'smpp://user:se%cret@host', from: 'Acme' },
    { url: 'smpp://host', from: 'a name that is too long' },
    { url: 'smpp://host', from: 'Acme', enquireEvery: 'often' },
  ])('refuses the settings %j and does not repeat the password', (wrong) => {
    const checked = smpp.settings.safeParse(wrong)
    expect(checked.success).toBe(false)
    expect(JSON.stringify(checked.error?.issues)).not.toContain('se%cret')
  })

  it.each([
    [0x14, 'postponed'],
    [0x45, 'postponed'],
    [0xfe, 'postponed'],
    [0x08, 'unavailable'],
    [0x58, 'throttled'],
    [0x0b, 'invalid_recipient'],
    [0x01, 'rejected'],
    [0x0a, 'rejected'],
    [0x65, 'rejected'],
    [0x64, 'postponed'],
    [0x045f, 'postponed'],
  ])('takes status 0x%s for %s', (status, kind) => {
    expect(resultOfStatus(status).kind).toBe(kind)
  })

  describe('receipts', () => {
    const text = (id: string, stat: string, err = '000') =>
      `id:${id} sub:001 dlvrd:001 submit date:2611010803 done date:2611010804 stat:${stat} err:${err} text:Your number`

    async function bound(entry: Record<string, unknown> = {}, options = {}) {
      const receipts: Receipt[] = []
      let isBroken = false
      const onReceipt = async (_provider: string, receipt: Receipt) => {
        if (isBroken) throw new Error('database away')
        receipts.push(receipt)
      }
      const started = await start(options, entry, { onReceipt })
      const session = await eventually(() => started.farEnd.sessions[0] ?? false)
      const deliver = (fields: Record<string, unknown>) =>
        new Promise<{ command_status: number }>((resolve) => {
          session.deliver_sm({ esm_class: 4, ...fields }, resolve)
        })
      return { ...started, receipts, deliver, breakDown: () => (isBroken = true) }
    }

    it('binds before anything is sent, reads the customary text and answers', async () => {
      const { receipts, deliver } = await bound()
      expect(await deliver({ short_message: text('smsc-1', 'DELIVRD') })).toMatchObject({
        command_status: 0,
      })
      await deliver({ short_message: text('smsc-2', 'UNDELIV', '0b1') })
      await deliver({ short_message: text('smsc-3', 'ACCEPTD') })
      expect(receipts).toEqual([
        { messageId: 'smsc-1', outcome: 'delivered', detail: 'DELIVRD' },
        { messageId: 'smsc-2', outcome: 'failed', detail: 'UNDELIV 0b1' },
      ])
    })

    it('come again after the SMSC was away, though nothing is sent (I12)', async () => {
      const { farEnd, receipts } = await bound()
      farEnd.sessions[0]?.socket.destroy()
      const again = await eventually(() => farEnd.sessions[1] ?? false)
      const short_message = text('smsc-1', 'DELIVRD')
      await new Promise((resolve) => again.deliver_sm({ esm_class: 4, short_message }, resolve))
      expect(receipts).toHaveLength(1)
    })

    it('prefers the optional parameters', async () => {
      const { receipts, deliver } = await bound()
      const fields = { receipted_message_id: 'smsc-9', message_state: 5 }
      await deliver({ short_message: 'free text', ...fields })
      expect(receipts).toEqual([{ messageId: 'smsc-9', outcome: 'failed', detail: 'UNDELIV' }])
    })

    it('passes over messages from phones', async () => {
      const { receipts, deliver } = await bound()
      const source_addr = '447700900123'
      const answer = await deliver({ esm_class: 0, source_addr, short_message: 'STOP' })
      expect(answer.command_status).toBe(0)
      await deliver({ esm_class: 0, source_addr, short_message: 'my id: 5' })
      expect(receipts).toEqual([])
    })

    it('without a mark in esm_class → count for the number that they name alone', async () => {
      const { receipts, deliver } = await bound()
      const short_message = text('smsc-1', 'DELIVRD')
      await deliver({ esm_class: 0, source_addr: '447700900123', short_message })
      await deliver({ esm_class: 0, source_addr: 'Acme', short_message })
      const recipients = ['447700900123']
      expect(receipts).toEqual([
        { messageId: 'smsc-1', recipients, outcome: 'delivered', detail: 'DELIVRD' },
        unreadable,
      ])
    })

    it('name the recipient in either address, in any form; the sender is not the recipient', async () => {
      const { receipts, deliver } = await bound({ from: '+447700900999' })
      const short_message = text('1', 'DELIVRD')
      const addresses = [
        ['07700900123', '447700900999'],
        ['+447700900999', '00447700900123'],
        ['447700900123', '447700900123'],
        ['4477009XXXXX', '12345'],
        ['0012345', `+${'0'.repeat(20)}`],
        ['', ''],
      ]
      for (const [source_addr, destination_addr] of addresses) {
        await deliver({ short_message, source_addr, destination_addr })
      }
      expect(receipts.map(({ recipients }) => recipients)).toEqual([
        ['7700900123'],
        ['447700900123'],
        ['447700900123'],
        undefined,
        undefined,
        undefined,
      ])
    })

    it.each([
      ['stat:FAILED', 'failed'],
      ['stat:DELIVERED', 'delivered'],
      ['stat:Delivrd', 'delivered'],
      ['stat:REJECTED', 'failed'],
      ['stat:UNDELIVERABLE', 'failed'],
    ])('%s → %s', async (stat, outcome) => {
      const { receipts, deliver } = await bound()
      await deliver({ short_message: `id:7 sub:001 ${stat} err:000` })
      expect(receipts).toMatchObject([{ messageId: '7', outcome }])
    })

    it.each(['ENROUTE', 'ACCEPTD', 'ACCEPTED', 'UNKNOWN', 'SCHEDULED'])(
      'stat:%s → not final, so nothing',
      async (stat) => {
        const { receipts, deliver } = await bound()
        await deliver({ short_message: text('7', stat) })
        expect(receipts).toEqual([])
      },
    )

    it('a final state in the text counts beside a message_state that is not final', async () => {
      const { receipts, deliver } = await bound()
      await deliver({ short_message: text('7', 'DELIVRD'), message_state: 1 })
      expect(receipts).toMatchObject([{ messageId: '7', outcome: 'delivered' }])
    })

    it('an empty receipted_message_id → the id of the text', async () => {
      const { receipts, deliver } = await bound()
      await deliver({ short_message: text('0000017', 'UNDELIV'), receipted_message_id: '' })
      expect(receipts).toMatchObject([{ messageId: '17', outcome: 'failed' }])
    })

    it('in UCS-2 → read, also with the data coding of another alphabet', async () => {
      const { receipts, deliver } = await bound()
      const message = Buffer.from(text('8', 'DELIVRD'), 'utf16le').swap16()
      await deliver({ short_message: { message }, data_coding: 8 })
      await deliver({ short_message: { message }, data_coding: 0 })
      expect(receipts).toMatchObject([{ messageId: '8' }, { messageId: '8' }])
    })

    it('by data_sm → read, and answered', async () => {
      const { farEnd, receipts } = await bound()
      const source = { source_addr: '447700900123', receipted_message_id: 'A9' }
      const fields = { esm_class: 4, message_state: 2, ...source }
      const answer = await new Promise((resolve) =>
        farEnd.sessions[0]?.send(new smppPackage.PDU('data_sm', fields), resolve),
      )
      expect(answer).toMatchObject({ command: 'data_sm_resp', command_status: 0 })
      expect(receipts).toMatchObject([
        { messageId: 'a9', recipients: ['447700900123'], outcome: 'delivered' },
      ])
    })

    it.each(['stat:DELIVRD', 'id:1 stat:constructor', 'id:1 stat:PERHAPS', 'no receipt at all'])(
      '%s → cannot be read, and is counted',
      async (short_message) => {
        const { receipts, deliver } = await bound()
        await deliver({ short_message })
        expect(receipts).toEqual([unreadable])
      },
    )

    it('an id in other letters or with other zeros is the id of the answer', async () => {
      const { send, receipts, deliver } = await bound({}, { messageId: () => '00AbC' })
      expect(await send('x')).toMatchObject({ messageId: 'abc' })
      await deliver({ short_message: text('ABC', 'DELIVRD') })
      await deliver({ short_message: text('0000abc', 'DELIVRD') })
      expect(receipts.map(({ messageId }) => messageId)).toEqual(['abc', 'abc'])
    })

    it('asks for a receipt again when it could not be recorded (I12)', async () => {
      const { deliver, breakDown } = await bound()
      breakDown()
      const answer = await deliver({ short_message: text('smsc-1', 'DELIVRD') })
      expect(answer.command_status).toBe(0x64)
    })

    it('matches ids that answers and receipts write in different bases', async () => {
      const hexAnswers = { messageId: () => '1A2B' }
      const one = await bound({ receiptIds: 'decimal' }, hexAnswers)
      expect(await one.send('x')).toMatchObject({ messageId: '6699' })
      await one.deliver({ short_message: text('0000006699', 'DELIVRD') })
      await one.deliver({ short_message: text('1a2b', 'DELIVRD') })
      expect(one.receipts[0]?.messageId).toBe('6699')
      // An SMSC that writes the base of its answers after all.
      expect(one.receipts[1]).toMatchObject({ messageId: '1a2b', otherMessageId: '6699' })
      const other = await bound({ receiptIds: 'hex' }, { messageId: () => '6699' })
      expect(await other.send('x')).toMatchObject({ messageId: '6699' })
      await other.deliver({ short_message: text('00001a2b', 'DELIVRD') })
      expect(other.receipts[0]?.messageId).toBe('6699')
    })
  })

  describe('packets', () => {
    it('lie in bytes as section 4.4.1 of the specification says', () => {
      const body = encodeShortMessage({
        source: { ton: 5, npi: 0, digits: 'Acme' },
        destination: { ton: 1, npi: 1, digits: '4477' },
        esmClass: 0,
        registeredDelivery: 1,
        dataCoding: 0,
        content: Buffer.from('hi'),
      })
      const pdu = encodePdu({ commandId: command.submitSm, status: 0, sequence: 7, body })
      expect(pdu.toString('hex')).toBe(
        '0000002b' + // length 43
          '00000004' + // submit_sm
          '00000000' + // status
          '00000007' + // sequence
          '00' + // service type
          '0500' +
          '41636d6500' + // source: name, Acme
          '0101' +
          '3434373700' + // destination: international, 4477
          '000000' + // esm class, protocol, priority
          '0000' + // schedule, validity
          '01000000' + // receipt asked, no replace, data coding, default message
          '02' +
          '6869', // two bytes: hi
      )
    })

    it.each([
      [1, '000000000001000R'],
      [299, '000000000459000R'],
      [86_399, '000000235959000R'],
      [90_061, '000001010101000R'],
      [28 * 86_400, '000028000000000R'],
    ])('write %d s as in section 7.1.1: %s', (validSeconds, expected) => {
      const address = { ton: 1, npi: 1, digits: '4477' }
      const body = encodeShortMessage({
        ...{ source: address, destination: address, esmClass: 0, registeredDelivery: 1 },
        ...{ dataCoding: 0, content: Buffer.from('hi'), validSeconds },
      })
      expect(body.toString('latin1')).toContain(`\0${expected}\0`)
    })

    it('are cut from a stream wherever it breaks', () => {
      const pdu = { commandId: 21, status: 0, sequence: 1, body: Buffer.from('abc') }
      const bytes = Buffer.concat([encodePdu(pdu), encodePdu({ ...pdu, sequence: 2 })])
      for (let at = 0; at <= bytes.length; at++) {
        const reader = createPduReader()
        const pdus = [bytes.subarray(0, at), bytes.subarray(at)].flatMap((part) => {
          reader.append(part)
          return Array.from({ length: 3 }, reader.next)
        })
        expect(pdus.filter((read) => read !== undefined)).toEqual([pdu, { ...pdu, sequence: 2 }])
      }
    })

    it.each(['HTTP/1.1 400', '\0\0\0\0', '\0\0\0\u000f'])('with length %j are refused', (bytes) => {
      const reader = createPduReader()
      reader.append(Buffer.from(bytes, 'latin1'))
      expect([reader.next(), reader.next()]).toEqual(['invalid', 'invalid'])
    })

    it('that end too early are not read', () => {
      for (const body of [Buffer.alloc(0), Buffer.from('\0'), Buffer.alloc(14, 1)]) {
        const pdu = { commandId: command.deliverSm, status: 0, sequence: 1, body }
        expect(decodeDelivered(pdu)).toBeUndefined()
      }
    })
  })
})
