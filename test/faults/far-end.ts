/** Faults of providers: they refuse, hang, demand a pause, and lose their answers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import { startAliyunFarEnd } from '../providers/far-ends/aliyun.ts'
import { startSmppFarEnd } from '../providers/far-ends/smpp.ts'
import { startFarEnd, takesAll } from '../tools/far-end.ts'
import { type Fleet, farEndSecret, freshPhone, startFleet } from '../tools/fleet.ts'
import { closeLater } from '../tools/release.ts'
import { startSmtp } from '../tools/smtp.ts'
import { eventually } from '../tools/wait.ts'
import { calm } from './calm.ts'
import { type Fault, type Lab, strikeUnderLoad } from './fault.ts'
import { settleOne, total } from './ledger.ts'

/** The far end behaves like this for a while, then it is healthy again. */
async function misbehave(
  { farEnd }: Fleet,
  forMs: number,
  behave: Fleet['farEnd']['behave'],
): Promise<void> {
  farEnd.behave = behave
  await sleep(forMs)
  farEnd.behave = takesAll
}

const outcomesOf = async (fleet: Fleet, id: string) => {
  const [row] = await fleet.query<{ attempts: { outcome: string }[] }>(
    'SELECT attempts FROM notice WHERE id = $1',
    [id],
  )
  return row?.attempts.map(({ outcome }) => outcome)
}

const refusing = (fleet: Fleet, lab: Lab) =>
  misbehave(fleet, lab.length(1_000, 10_000), ({ nth }) =>
    nth > 2 ? { status: 200 } : { status: 503 },
  )

const f14: Fault = {
  id: 'F14',
  breaks: 'a provider answers 503 twice for each message, and resets connections',
  holds: 'each is tried again and taken once; counters equal the ledger',
  proves: 'I1, I8, I15',
  strike: refusing,
  async prove(lab) {
    const { fleet, report } = await strikeUnderLoad(lab, refusing)
    expect(report.final).toEqual({ sent: report.accepted })
    fleet.farEnd.behave = ({ nth }) => (nth > 1 ? { status: 200 } : 'reset')
    const { body } = await fleet.send(freshPhone())
    expect(await settleOne(fleet, body.id)).toBe('sent')
    expect(await outcomesOf(fleet, body.id)).toEqual(['unknown', 'accepted'])
    return report
  },
}

const hanging = (fleet: Fleet, lab: Lab) =>
  misbehave(fleet, lab.length(2_000, 15_000), () => 'hang')

/** The median time from the request to the final state. */
async function medianMailMs(fleet: Fleet, lab: Lab, mails: number): Promise<number> {
  const tookMs: number[] = []
  for (let mail = 0; mail < mails; mail++) {
    const startMs = performance.now()
    const { body } = await mailTo(fleet, `user${lab.between(0, 1e9)}@example.test`)
    expect(await settleOne(fleet, body.id)).toBe('sent')
    tookMs.push(performance.now() - startMs)
  }
  return tookMs.sort((a, b) => a - b)[mails >> 1] as number
}

const f15: Fault = {
  id: 'F15',
  breaks: 'the first of two providers of one channel hangs',
  holds:
    'each call is ended in time, the breaker opens, within 2 s of that messages go by the next provider, every message ends in a final state, the other channel is as fast as before',
  proves: 'I1, I8',
  strike: hanging,
  async prove(lab) {
    const spare = await startFarEnd()
    const webhook = { kind: 'webhook', secret: farEndSecret }
    const fleet = await startFleet({
      policyFile: (farEndUrl) => ({
        delivery: { timeout: '3s' },
        providers: { far: { ...webhook, url: farEndUrl }, spare: { ...webhook, url: spare.url } },
        routes: { email: [{ use: ['spare'] }], sms: [{ use: ['far', 'spare'] }] },
      }),
    })
    const mails = lab.length(15, 100)
    const calmMs = await medianMailMs(fleet, lab, mails)
    fleet.farEnd.behave = () => 'hang'
    // Twice the number of messages that one worker sends at once.
    const hung = await Promise.all(Array.from({ length: 200 }, () => fleet.send(freshPhone())))
    await eventually(
      async () => (await total(fleet.workers, 'postern_provider_circuit_open{provider="far"')) > 0,
    )
    // Two seconds, or more on a machine that others use, or where a mail takes long without a fault too.
    const soonMs = lab.length(6_000, 2_000) + 20 * calmMs
    const openedMs = performance.now()
    const moved = await Promise.all(Array.from({ length: 20 }, () => fleet.send(freshPhone())))
    for (const { body } of moved) expect(await settleOne(fleet, body.id, soonMs)).toBe('sent')
    expect(performance.now() - openedMs).toBeLessThan(soonMs)
    expect(moved.filter(({ body }) => spare.taken.has(body.id)).length).toBeGreaterThan(15)
    // The first probe comes three seconds after the opening, and takes one message to the dead provider.
    const stormMs = await medianMailMs(fleet, lab, mails)
    // Behind calls that hang, it would take seconds.
    expect(stormMs).toBeLessThan(calmMs * 3 + 500)

    fleet.farEnd.behave = takesAll
    for (const { body } of hung) {
      expect(['sent', 'failed']).toContain(await settleOne(fleet, body.id, 60_000))
    }
    if (lab.isFull) {
      console.log(
        `mails: median ${calmMs.toFixed(0)} ms, beside a hanging provider ${stormMs.toFixed(0)} ms`,
      )
    }
    return undefined
  },
}

const f16: Fault = {
  id: 'F16',
  breaks: 'a vendor answers HTTP 200 with an error inside',
  holds:
    'the message is not sent: failed with the vendor’s code where it is for good, tried again otherwise',
  proves: 'I1',
  async prove() {
    const key = { id: 'LTAI5tFaults', secret: 'a secret of the vendor' }
    const vendor = closeLater(await startAliyunFarEnd(key))
    const fleet = await startFleet({
      policyFile: {
        providers: {
          aliyun: {
            kind: 'aliyun',
            accessKeyId: key.id,
            accessKeySecret: key.secret,
            signName: 'Acme',
            templates: { captcha: { en: 'SMS_1' } },
            endpoint: `http://127.0.0.1:${vendor.port}`,
          },
        },
        routes: { sms: [{ use: ['aliyun'] }], email: [] },
      },
    })
    await vendor.behave('reject')
    const refused = await fleet.send(freshPhone())
    expect(await settleOne(fleet, refused.body.id)).toBe('failed')
    expect(await outcomesOf(fleet, refused.body.id)).toEqual(['rejected'])

    await vendor.behave('error_inside')
    const waiting = await fleet.send(freshPhone())
    while (!(await outcomesOf(fleet, waiting.body.id))?.length) await sleep(50)
    await vendor.behave('accept')
    expect(await settleOne(fleet, waiting.body.id)).toBe('sent')
    expect((await outcomesOf(fleet, waiting.body.id))?.at(-1)).toBe('accepted')
    expect(vendor.complaints).toEqual([])
    return undefined
  },
}

const throttling = (fleet: Fleet, lab: Lab) =>
  misbehave(fleet, lab.length(1_000, 10_000), ({ nth }) =>
    nth > 2 ? { status: 200 } : { status: 429, headers: { 'retry-after': '1' } },
  )

const f17: Fault = {
  id: 'F17',
  breaks: 'a provider asks for a pause of a second, twice, where one try is all there is',
  holds: 'the pause is kept and uses up no try',
  proves: 'I1, I15',
  strike: throttling,
  async prove(lab) {
    const { fleet, report } = await strikeUnderLoad(lab, throttling, {
      perSecond: 20,
      policyFile: { delivery: { tries: 1 } },
    })
    expect(report.final).toEqual({ sent: report.accepted })
    let firstMs = 0
    let pausedMs = 0
    fleet.farEnd.behave = ({ nth }) => {
      if (nth === 1) firstMs = performance.now()
      else pausedMs = performance.now() - firstMs
      return nth > 1 ? { status: 200 } : { status: 429, headers: { 'retry-after': '1' } }
    }
    const { body } = await fleet.send(freshPhone())
    expect(await settleOne(fleet, body.id)).toBe('sent')
    expect(pausedMs).toBeGreaterThan(990)
    return report
  },
}

const losing = (fleet: Fleet, lab: Lab) =>
  misbehave(fleet, lab.length(1_000, 10_000), ({ nth }) => (nth > 1 ? { status: 200 } : 'lose'))

const f18: Fault = {
  id: 'F18',
  breaks: 'a provider takes the message and its answer is lost',
  holds: 'it is tried once more under the same reference, never a third time',
  proves: 'I1, I8',
  strike: losing,
  async prove(lab) {
    const { fleet, report } = await strikeUnderLoad(lab, losing, { mayDouble: true })
    expect(report.final).toEqual({ sent: report.accepted })
    expect(report.doubled).toBeGreaterThan(0)
    expect(Math.max(...fleet.farEnd.taken.values())).toBe(2)

    fleet.farEnd.behave = () => 'lose'
    const { body } = await fleet.send(freshPhone())
    expect(await settleOne(fleet, body.id)).toBe('failed')
    expect(fleet.farEnd.calls.get(body.id)).toBe(2)
    return report
  },
}

const smtpFleet = (url: string, timeout = '10s') =>
  startFleet({
    policyFile: {
      delivery: { timeout },
      providers: { mail: { kind: 'smtp', url, from: 'Acme <no-reply@acme.test>' } },
      routes: { email: [{ use: ['mail'] }], sms: [] },
    },
  })

const mailTo = (fleet: Fleet, to: string) => fleet.post('/v1/captchas', { channel: 'email', to })

const f19: Fault = {
  id: 'F19',
  breaks: 'an SMTP server answers 451 to one recipient at first, and 550 to another',
  holds: 'the first is put off and sent, the second is failed after one try',
  proves: 'I1, I8',
  async prove() {
    let refusals = 0
    const smtp = await startSmtp({
      onRcptTo({ address }, _session, callback) {
        const refuse = (responseCode: number) =>
          callback(Object.assign(new Error('no'), { responseCode }))
        if (address.startsWith('nobody')) return refuse(550)
        if (address.startsWith('later') && refusals++ < 2) return refuse(451)
        callback()
      },
    })
    const fleet = await smtpFleet(smtp.url)
    const later = await mailTo(fleet, 'later@example.test')
    const nobody = await mailTo(fleet, 'nobody@example.test')
    expect(await settleOne(fleet, nobody.body.id)).toBe('failed')
    expect(await outcomesOf(fleet, nobody.body.id)).toEqual(['invalid_recipient'])
    expect(await settleOne(fleet, later.body.id)).toBe('sent')
    const [later1] = await fleet.query<{ attempts: object[] }>(
      'SELECT attempts FROM notice WHERE id = $1',
      [later.body.id],
    )
    expect(later1?.attempts).toMatchObject([
      { outcome: 'postponed', count: 2 },
      { outcome: 'accepted' },
    ])
    expect(smtp.mails.map(({ envelope }) => envelope.to)).toEqual([['later@example.test']])
    return undefined
  },
}

const f20: Fault = {
  id: 'F20',
  breaks: 'an SMTP server accepts connections and never greets',
  holds: 'each try ends in time; once it greets, the mail is sent once',
  proves: 'I1, I8',
  async prove() {
    let isSticky = true
    const smtp = await startSmtp({
      onConnect(_session, callback) {
        if (!isSticky) callback()
      },
    })
    const fleet = await smtpFleet(smtp.url, '1s')
    const { body } = await mailTo(fleet, 'ada@example.test')
    while (!(await outcomesOf(fleet, body.id))?.length) await sleep(50)
    isSticky = false
    expect(await settleOne(fleet, body.id)).toBe('sent')
    expect((await outcomesOf(fleet, body.id))?.[0]).toBe('unavailable')
    expect(smtp.mails).toHaveLength(1)
    return undefined
  },
}

/** Posted like a carrier's receipt, signed with `secret`. */
async function postReceipt(fleet: Fleet, receipt: object, secret: string): Promise<number> {
  const body = JSON.stringify(receipt)
  const response = await fetch(`${fleet.apis[0]?.url}/v1/receipts/far`, {
    method: 'POST',
    body,
    headers: { connection: 'close', ...signWebhook(secret, newId(), Date.now(), body) },
  })
  await response.body?.cancel()
  return response.status
}

const f21: Fault = {
  id: 'F21',
  breaks: 'receipts before the answer they belong to, doubled, contradicting each other, forged',
  holds: 'the first word counts, whenever it comes; forged ones change nothing',
  proves: 'I1, I12',
  async prove(lab) {
    const ids: string[] = []
    const fleet = await startFleet()
    const firstWord = new Map<string, 'delivered' | 'failed'>()
    fleet.farEnd.behave = async ({ noticeId }) => {
      const outcome = lab.pick(['delivered', 'failed'] as const)
      firstWord.set(noticeId, outcome)
      const forged = outcome === 'failed' ? 'delivered' : 'failed'
      expect(await postReceipt(fleet, { noticeId, outcome: forged }, 'a guess at it')).toBe(403)
      expect(await postReceipt(fleet, { noticeId, outcome }, farEndSecret)).toBe(204)
      return { status: 200 }
    }
    for (let sends = 0; sends < lab.length(20, 200); sends++) {
      ids.push((await fleet.send(freshPhone())).body.id)
    }
    const states = async () => {
      const rows = await fleet.query<{ id: string; state: string }>('SELECT id, state FROM notice')
      return new Map(rows.map(({ id, state }) => [id, state]))
    }
    await eventually(async () => expect(await states()).toEqual(firstWord))
    expect(firstWord.size).toBe(ids.length)
    for (const noticeId of ids) {
      const later = lab.pick(['delivered', 'failed'] as const)
      const id = `far-${noticeId}`
      expect(await postReceipt(fleet, { id, noticeId, outcome: later }, farEndSecret)).toBe(204)
      expect(await postReceipt(fleet, { id, outcome: later }, farEndSecret)).toBe(204)
    }
    expect(await states()).toEqual(firstWord)
    return undefined
  },
}

const f29: Fault = {
  id: 'F29',
  breaks: 'a provider that accepts every message, always after 2 s',
  holds: 'all are delivered at its pace and at their first try; it is never locked out',
  proves: 'I1, I8, I22',
  async prove(lab) {
    const atOnce = 5
    const fleet = await startFleet({
      workers: 0,
      policyFile: { delivery: { concurrency: atOnce } },
    })
    const times: number[] = []
    fleet.farEnd.behave = async () => {
      times.push(performance.now())
      await sleep(2_000)
      times.push(performance.now())
      return { status: 200 }
    }
    const rounds = lab.length(5, 20)
    const sends = await Promise.all(
      Array.from({ length: rounds * atOnce }, () => fleet.send(freshPhone())),
    )
    await fleet.startWorker()
    for (const { body } of sends) {
      expect(await settleOne(fleet, body.id, 20_000 + rounds * 4_000)).toBe('sent')
      expect(await outcomesOf(fleet, body.id)).toEqual(['accepted'])
    }
    const over = (Math.max(...times) - Math.min(...times)) / (rounds * 2_000)
    console.log(`time at work, compared with the least possible: ${over.toFixed(2)}`)
    expect(over).toBeLessThan(lab.length(1.5, 1.1))
    // Before anything is known of the provider, it may look dead once for half a second.
    const openings = fleet.workers[0]?.output().match(/not called for now/g)?.length ?? 0
    expect(openings).toBeLessThanOrEqual(1)
    expect(Math.max(...fleet.farEnd.taken.values())).toBe(1)
    return undefined
  },
}

const f31: Fault = {
  id: 'F31',
  breaks:
    'the first provider of a route rejects a message for good, the second asks to wait, again and again',
  holds: 'the first is asked once, and the second sends it within its time',
  proves: 'I1, I8',
  async prove() {
    const never = await startFarEnd()
    never.behave = () => ({ status: 422 })
    const webhook = { kind: 'webhook', secret: farEndSecret }
    const fleet = await startFleet({
      policyFile: (url) => ({
        providers: { never: { ...webhook, url: never.url }, later: { ...webhook, url } },
        routes: { sms: [{ use: ['never', 'later'] }], email: [] },
      }),
    })
    fleet.farEnd.behave = ({ nth }) =>
      nth > 6 ? { status: 200 } : { status: 429, headers: { 'retry-after': '1' } }
    const { body } = await fleet.send(freshPhone())
    expect(await settleOne(fleet, body.id, 30_000)).toBe('sent')
    expect(never.calls.get(body.id)).toBe(1)
    expect((await outcomesOf(fleet, body.id))?.filter((one) => one === 'rejected')).toHaveLength(1)
    return undefined
  },
}

/** Message ids that a far end may use. */
const strangeIds: readonly unknown[] = [
  'with a NUL \u0000 inside',
  '\ud800 half a character',
  'x'.repeat(10_000),
  'line\r\nbreak',
  '',
  7,
  null,
  { an: 'object' },
  ['a', 'list'],
]

const f32: Fault = {
  id: 'F32',
  breaks: 'far ends answer with ids that hold NUL, 10 kB, control characters, and with wrong types',
  holds: 'each row ends sent without such an id, the slot is free again, the process stops in time',
  proves: 'I1, I8, I13',
  async prove() {
    const smscIds = ['\u0001\u0002', 'f'.repeat(10_000), 'smsc-1']
    const smsc = closeLater(await startSmppFarEnd({ messageId: (n) => smscIds[n - 1] ?? 'more' }))
    const fleet = await startFleet({
      policyFile: (url) => ({
        // Each takes one slot. If a slot were kept, nothing more would be sent.
        delivery: { concurrency: 1 },
        providers: {
          far: { kind: 'webhook', url, secret: farEndSecret },
          smsc: {
            kind: 'smpp',
            url: `smpp://postern:pass@127.0.0.1:${smsc.port}`,
            from: 'Acme',
            window: 1,
            receiptIds: 'hex',
          },
        },
        routes: { email: [{ use: ['far'] }], sms: [{ use: ['smsc'] }] },
      }),
    })
    const answers = strangeIds.map((id) => JSON.stringify({ id }))
    fleet.farEnd.behave = () => ({ status: 200, body: answers.shift() ?? '{"id":"x"}' })
    const idOf = async (reply: { body: { id: string } }) => {
      expect(await settleOne(fleet, reply.body.id)).toBe('sent')
      const [row] = await fleet.query<{ id: string | null }>(
        'SELECT provider_message_id AS id FROM notice WHERE id = $1',
        [reply.body.id],
      )
      return row?.id
    }
    for (const index of strangeIds.keys()) {
      expect(await idOf(await mailTo(fleet, `user${index}@example.test`))).toBe(null)
    }
    expect(await idOf(await mailTo(fleet, 'last@example.test'))).toBe('x')
    for (const kept of [null, null, 'smsc-1']) {
      expect(await idOf(await fleet.send(freshPhone()))).toBe(kept)
    }
    expect(Math.max(...fleet.farEnd.taken.values())).toBe(1)
    expect(smsc.taken).toHaveLength(3)
    expect(await fleet.workers[0]?.terminate()).toBe(0)
    return undefined
  },
}

const mailProvider = (url: string) => ({ kind: 'smtp', url, from: 'Acme <no-reply@acme.test>' })

const openingsOf = (fleet: Fleet) =>
  fleet.all.reduce((sum, one) => sum + (one.output().match(/not called for now/g)?.length ?? 0), 0)

interface SentRow {
  id: string
  kind: 'captcha' | 'notice'
  recipient: string
  state: string
  error: string | null
  attempts: { outcome: string; count?: number }[]
  createdMs: number
  /** Only for sent notices. */
  sentMs: number
}

const rowsOf = (fleet: Fleet) =>
  fleet.query<SentRow>(
    `SELECT id, kind, recipient, state, error, attempts,
            extract(epoch FROM created_at)::float8 * 1000 AS "createdMs",
            extract(epoch FROM sent_at)::float8 * 1000 AS "sentMs"
     FROM notice`,
  )

const noneOpen = (fleet: Fleet, withinMs: number) =>
  eventually(
    async () => {
      const open = await fleet.query('SELECT 1 FROM notice WHERE due_at IS NOT NULL')
      expect(open).toHaveLength(0)
    },
    { withinMs, everyMs: 200 },
  )

/** A code, or a notice with a lifetime of a day. */
function postMail(fleet: Fleet, kind: 'captcha' | 'notice', to: string) {
  const notice = { template: 'welcome', params: { name: 'Ada' }, ttl: '1d' }
  return kind === 'captcha'
    ? mailTo(fleet, to)
    : fleet.post('/v1/notices', { channel: 'email', to, ...notice })
}

const f35: Fault = {
  id: 'F35',
  breaks:
    'the mail server is away for ten minutes, at one message a minute and with a worker killed in between (in short: for 8 s, at two a second)',
  holds:
    'no try is used and nothing is lost: all are sent within a minute of its return, codes within their time, each once; a row has a short list of what was tried',
  proves: 'I1, I8, I29',
  async prove(lab) {
    const [gone, never] = [await startSmtp(), await startSmtp()]
    const fleet = await startFleet({
      policyFile: {
        // An additional call for the message that the killed worker was sending.
        delivery: { timeout: '5s', tries: 2 },
        providers: { mail: mailProvider(gone.url), never: mailProvider(never.url) },
        // Notices have only this server. Codes have another server first, which never returns.
        routes: {
          email: [{ match: { template: ['welcome'] }, use: ['mail'] }, { use: ['never', 'mail'] }],
          sms: [],
        },
      },
    })
    await Promise.all([gone.close(), never.close()])
    const messages = lab.length(16, 10)
    for (let message = 0; message < messages; message++) {
      const kind = message % 2 ? 'captcha' : 'notice'
      expect((await postMail(fleet, kind, `m${message}@example.test`)).status).toBe(202)
      if (message === messages >> 1) {
        await fleet.workers[0]?.kill()
        await fleet.startWorker()
      }
      await sleep(lab.length(500, 60_000))
    }
    const returned = await startSmtp({}, gone.port)
    const returnedMs = Date.now()
    await noneOpen(fleet, 70_000)
    const rows = await rowsOf(fleet)
    expect(rows).toHaveLength(messages)
    const codeTtlMs = 300_000
    for (const { kind, state, error, createdMs, sentMs, attempts } of rows) {
      expect(attempts.length).toBeLessThanOrEqual(5)
      if (kind === 'captcha' && createdMs + codeTtlMs < returnedMs) {
        expect({ state, error }).toEqual({ state: 'expired', error: 'provider_away' })
        continue
      }
      expect({ state, error }).toEqual({ state: 'sent', error: null })
      expect(sentMs - returnedMs).toBeLessThan(60_000)
      if (kind === 'captcha') expect(sentMs - createdMs).toBeLessThan(codeTtlMs)
    }
    const sent = rows.filter(({ state }) => state === 'sent')
    expect(returned.mails).toHaveLength(sent.length)
    if (lab.isFull) {
      const waits = sent.map(({ sentMs }) => Math.round(sentMs - returnedMs))
      const calls = rows.flatMap(({ attempts }) => attempts.map(({ count = 1 }) => count))
      console.log(`${sent.length} of ${messages} sent, so many ms after the return:`, waits)
      console.log(`calls in all ${calls.reduce((sum, count) => sum + count, 0)}`)
    }
    return undefined
  },
}

const f37: Fault = {
  id: 'F37',
  breaks:
    'greylisting: a mail server answers 450 to each new recipient for 20 s, then takes the mail (in short: for 3 s)',
  holds: 'all are delivered, none fails, and the server is never kept away from',
  proves: 'I1, I8, I30',
  async prove(lab) {
    const seenMs = new Map<string, number>()
    const greyMs = lab.length(3_000, 20_000)
    const smtp = await startSmtp({
      onRcptTo({ address }, _session, callback) {
        const firstMs = seenMs.get(address) ?? performance.now()
        seenMs.set(address, firstMs)
        if (performance.now() - firstMs >= greyMs) return callback()
        callback(Object.assign(new Error('4.7.1 Greylisted'), { responseCode: 450 }))
      },
    })
    const fleet = await smtpFleet(smtp.url)
    const mails = lab.length(40, 300)
    for (let mail = 0; mail < mails; mail++) {
      const kind = mail % 2 ? 'captcha' : 'notice'
      expect((await postMail(fleet, kind, `m${mail}@example.test`)).status).toBe(202)
    }
    await noneOpen(fleet, lab.length(60_000, 120_000))
    const rows = await rowsOf(fleet)
    expect(rows.filter(({ state }) => state === 'sent')).toHaveLength(mails)
    expect(smtp.mails).toHaveLength(mails)
    for (const { attempts } of rows) {
      expect(attempts).toMatchObject([{ outcome: 'postponed' }, { outcome: 'accepted' }])
    }
    expect(openingsOf(fleet)).toBe(0)
    if (lab.isFull) {
      const waits = rows.map(({ createdMs, sentMs }) => sentMs - createdMs).sort((a, b) => a - b)
      console.log(`all ${mails} sent, the last after ${Math.round(waits.at(-1) ?? 0)} ms`)
    }
    return undefined
  },
}

const i30: Fault = {
  id: 'I30',
  breaks: 'sixty recipients whose server answers 450 for ever, beside five good mails a second',
  holds: 'each good mail is sent at its first try, and is kept waiting by nobody',
  proves: 'I8, I30',
  async prove(lab) {
    const smtp = await startSmtp({
      onRcptTo({ address }, _session, callback) {
        if (!address.startsWith('nowhere')) return callback()
        callback(Object.assign(new Error('4.1.2 Domain not found'), { responseCode: 450 }))
      },
    })
    const fleet = await smtpFleet(smtp.url)
    let people = 0
    const sendGood = async (seconds: number) => {
      const from = people
      for (let mail = 0; mail < seconds * 5; mail++) {
        expect((await mailTo(fleet, `good${people++}@example.test`)).status).toBe(202)
        await sleep(200)
      }
      const names = new Set(
        Array.from({ length: people - from }, (_, index) => `good${from + index}@example.test`),
      )
      return eventually(async () => {
        const rows = (await rowsOf(fleet)).filter(({ recipient }) => names.has(recipient))
        for (const { attempts } of rows) expect(attempts).toMatchObject([{ outcome: 'accepted' }])
        return rows.map(({ createdMs, sentMs }) => sentMs - createdMs).sort((a, b) => a - b)
      })
    }
    const p95 = (waits: number[]) => Math.round(waits[Math.floor(waits.length * 0.95)] ?? 0)
    const quiet = await sendGood(lab.length(2, 60))
    await Promise.all(
      Array.from({ length: 60 }, (_, index) => mailTo(fleet, `nowhere${index}@example.test`)),
    )
    const beside = await sendGood(lab.length(4, 60))
    expect(openingsOf(fleet)).toBe(0)
    // Sixty messages may wait at once. The provider is never skipped or paused.
    const isAway = (series: string) => !series.includes('reason="busy"')
    expect(await total(fleet.workers, 'postern_sends_deferred_total', isAway)).toBe(0)
    expect(smtp.mails).toHaveLength(quiet.length + beside.length)
    console.log(`p95 of the good ones: ${p95(quiet)} ms when quiet, ${p95(beside)} ms beside`)
    if (lab.isFull) expect(p95(beside)).toBeLessThanOrEqual(p95(quiet) * 2)
    return undefined
  },
}

export const farEndFaults: readonly Fault[] = [
  f14,
  f15,
  f16,
  f17,
  f18,
  f19,
  f20,
  f21,
  f29,
  f31,
  f32,
  f35,
  f37,
  i30,
  calm,
]
