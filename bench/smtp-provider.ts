/**
 * The cost of the provider kind `smtp`, compared with a nodemailer pool: the same far end, mail and number of
 * connections, in alternating rounds, by medians. The far end runs in a separate process, so neither figure includes
 * its work.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import nodemailer from 'nodemailer'
import { SMTPServer } from 'smtp-server'
import { newId } from '../src/base/ids.ts'
import { smtp } from '../src/providers/smtp/index.ts'
import { median } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const rounds = 7
const mailsPerRound = 1_500
const connections = 5
const inFlight = connections
const mail = {
  channel: 'email' as const,
  to: 'ada@example.test',
  template: 'captcha',
  locale: 'en',
  variables: {},
  subject: 'Your code',
  text: 'Your code is 1234. It is good for five minutes.',
  html: '<p>Your code is <b>1234</b>. It is good for five minutes.</p>',
}

if (process.argv[2] === 'server') serve()
else await compare()

function serve() {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    onData(stream, _session, done) {
      stream.on('end', () => done(null))
      stream.resume()
    },
  })
  server.listen(0, '127.0.0.1', () => {
    process.send?.((server.server.address() as AddressInfo).port)
  })
  process.on('disconnect', () => process.exit())
}

async function compare() {
  const server = fork(import.meta.filename, ['server'])
  const [port] = (await once(server, 'message')) as [number]
  const options = { host: '127.0.0.1', port, maxConnections: connections, pool: true as const }
  const bare = nodemailer.createTransport({ ...options, maxMessages: Number.POSITIVE_INFINITY })
  const entry = { url: `smtp://127.0.0.1:${port}`, from: 'Acme <no-reply@acme.test>', connections }
  const ours = smtp.create('mail', smtp.settings.parse(entry), {
    timeoutMs: 5_000,
    concurrency: 100,
    clock: Date.now,
  })
  const { signal } = new AbortController()
  const senders = {
    bare: async () => {
      const { to, subject, text, html } = mail
      await bare.sendMail({ from: entry.from, to, subject, text, html })
    },
    ours: async () => {
      const result = await ours.send({ ...mail, noticeId: newId() }, signal)
      if (result.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(result)}`)
    },
  }
  const perSecond: Record<keyof typeof senders, number[]> = { bare: [], ours: [] }
  for (let round = 0; round <= rounds; round++) {
    for (const who of ['bare', 'ours'] as const) {
      const rate = await measure(senders[who])
      if (round > 0) perSecond[who].push(rate)
    }
  }
  const [bareRate, ourRate] = [median(perSecond.bare), median(perSecond.ours)]
  const addRow = openTable(`${connections} connections, ${inFlight} in flight`, 'mails/s', 'ratio')
  addRow('nodemailer pool alone', Math.round(bareRate), '1.00')
  addRow('smtp provider', Math.round(ourRate), (ourRate / bareRate).toFixed(2))
  bare.close()
  await ours.close()
  server.disconnect()
}

async function measure(send: () => Promise<void>): Promise<number> {
  let left = mailsPerRound
  const startedAt = performance.now()
  const loop = async () => {
    while (left-- > 0) await send()
  }
  await Promise.all(Array.from({ length: inFlight }, loop))
  return (mailsPerRound * 1_000) / (performance.now() - startedAt)
}
