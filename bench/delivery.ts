/**
 * Question: how much of what a nodemailer pool can send does a worker send, with everything that makes
 * a notice certain (claim, render, limits, record, queue) around each mail?
 *
 * One SMTP server in a process of its own, the same mail, the same number of connections. Each round
 * starts a process with the bare pool and a worker anew, lets both warm up, and measures one after the
 * other: what V8 makes of the same code differs by a third from process to process, and a comparison of
 * two processes would say no more than that. The medians are compared. A worker's turn begins with rows
 * and jobs already there and the queue opened, and ends when the server has them all. At last half of
 * the worker's rate is sent through one API process, and each mail is timed from the 202 to the
 * server's acceptance.
 *
 * The mail is a captcha, text and HTML, whose code is remembered in Redis and asked for before the send;
 * or the notice `welcome`, which is text alone.
 *
 *   npx node bench/delivery.ts [rounds] [mails per turn] [captcha | welcome]
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Queue } from 'bullmq'
import nodemailer from 'nodemailer'
import { SMTPServer } from 'smtp-server'
import { newId } from '../src/base/ids.ts'
import { createCodeStore } from '../src/captcha/code-store.ts'
import { createSecrets } from '../src/crypto/secrets.ts'
import { queueName, queuePrefix } from '../src/notice/job.ts'
import { createProducer } from '../src/notice/producer.ts'
import { createNoticeStore } from '../src/notice/store.ts'
import { loadTemplates } from '../src/notice/templates.ts'
import { openDatabase } from '../src/storage/database.ts'
import { connectRedis } from '../src/storage/redis.ts'
import { type Bench, key, openBench, repository, secret } from './harness/bench.ts'
import { cpuMs, median, percentile } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const rounds = Number(process.argv[2] ?? 5)
const mailsPerTurn = Number(process.argv[3] ?? 2_000)
const template = process.argv[4] ?? 'captcha'
const kind = template === 'captcha' ? 'captcha' : 'notice'
const params: Record<string, string> =
  kind === 'captcha' ? { code: '1234', validity: '5 minutes' } : { name: 'Ada' }
const connections = 5
const inFlight = 50
const from = 'Acme <no-reply@acme.test>'
let emails = 0

if (process.argv[2] === 'smtp') serveSmtp()
else if (process.argv[2] === 'pool') servePool(Number(process.argv[3]))
else await main()

/** Counts, and tells when a turn's mails are all there; each mail's time is kept by its recipient. */
function serveSmtp(): void {
  let count = 0
  let wanted = Number.POSITIVE_INFINITY
  const acceptedAtMs = new Map<string, number>()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    onData(stream, session, done) {
      stream.on('end', () => {
        count++
        acceptedAtMs.set(session.envelope.rcptTo[0]?.address ?? '', Date.now())
        done(null)
        if (count === wanted) process.send?.({ all: true })
      })
      stream.resume()
    },
  })
  process.on('message', (message: { expect?: number; times?: true }) => {
    if (message.expect !== undefined) {
      count = 0
      wanted = message.expect
      acceptedAtMs.clear()
      process.send?.({ ready: true })
    } else process.send?.({ times: [...acceptedAtMs] })
  })
  server.listen(0, '127.0.0.1', () => {
    process.send?.({ port: (server.server.address() as AddressInfo).port })
  })
  process.on('disconnect', () => process.exit())
}

/** Sends mails to the recipients it is told, and does nothing else. */
function servePool(port: number): void {
  const pool = nodemailer.createTransport({
    pool: true,
    host: '127.0.0.1',
    port,
    maxConnections: connections,
    maxMessages: Number.POSITIVE_INFINITY,
  })
  const mail = loadTemplates(join(repository, 'templates')).render(template, 'email', 'en', params)
  process.on('message', async ({ recipients }: { recipients: string[] }) => {
    const loop = async () => {
      for (let to = recipients.pop(); to; to = recipients.pop()) {
        await pool.sendMail({ from, to, ...mail })
      }
    }
    await Promise.all(Array.from({ length: inFlight }, loop))
  })
  process.on('disconnect', () => process.exit())
}

async function main(): Promise<void> {
  const bench = await openBench()
  try {
    await compare(bench)
  } finally {
    await bench.close()
  }
}

async function compare(bench: Bench): Promise<void> {
  const smtp = bench.fork(import.meta.filename, ['smtp'])
  const [{ port }] = (await once(smtp, 'message')) as [{ port: number }]
  const policyFile = policyFileFor(port)
  const backlog = openBacklog(bench)

  async function turn(start: () => unknown): Promise<number> {
    await ask(smtp, { expect: mailsPerTurn })
    const all = once(smtp, 'message')
    const startMs = performance.now()
    await start()
    await all
    return perSecond(startMs)
  }

  async function bareTurn(pool: ChildProcess): Promise<number> {
    const recipients = Array.from({ length: mailsPerTurn }, freshEmail)
    return turn(() => pool.send({ recipients }))
  }

  async function workerTurn(): Promise<number> {
    const rate = await turn(() => backlog.open())
    await backlog.close()
    return rate
  }

  /** Takes a turn and adds up what each process used in it. */
  async function weighed(
    take: () => Promise<number>,
    pids: Readonly<Record<string, number>>,
    used: Record<string, number>,
  ): Promise<number> {
    const before = Object.values(pids).map(cpuMs)
    const rate = await take()
    Object.entries(pids).forEach(([name, pid], index) => {
      used[name] = (used[name] ?? 0) + cpuMs(pid) - (before[index] as number)
    })
    return rate
  }
  const shared = {
    smtp: smtp.pid as number,
    redis: bench.redis.pid,
    postgres: bench.postgres.pid,
  }
  const usedBare: Record<string, number> = {}
  const usedWorker: Record<string, number> = {}
  const rates: { bare: number[]; worker: number[] } = { bare: [], worker: [] }
  for (let round = 0; round < rounds; round++) {
    await backlog.fill(mailsPerTurn)
    const pool = bench.fork(import.meta.filename, ['pool', port, template])
    const worker = await bench.start('src/main/worker.ts', policyFile)
    await bareTurn(pool)
    await workerTurn()
    await backlog.fill(mailsPerTurn)
    const ownBare = { sender: pool.pid as number, ...shared }
    rates.bare.push(await weighed(() => bareTurn(pool), ownBare, usedBare))
    rates.worker.push(await weighed(workerTurn, { sender: worker.pid, ...shared }, usedWorker))
    pool.disconnect()
    // The last one, warm, goes on to the time from the 202.
    if (round < rounds - 1) await worker.stop()
  }
  const [bare, worker] = [median(rates.bare), median(rates.worker)]
  const addRow = openTable(
    `${template}: medians of ${rounds} rounds, ${mailsPerTurn} mails a turn, ${connections} connections`,
    'mails/s',
    'ratio',
    'sender µs',
    'SMTP server µs',
    'Redis µs',
    'PostgreSQL µs',
  )
  const microseconds = (used: Record<string, number>) =>
    Object.values(used).map((ms) => Math.round((ms * 1_000) / rounds / mailsPerTurn))
  const ratio = (worker / bare).toFixed(2)
  addRow(
    `nodemailer pool alone, ${inFlight} in flight`,
    bare.toFixed(0),
    '1.00',
    ...microseconds(usedBare),
  )
  addRow('one worker', worker.toFixed(0), ratio, ...microseconds(usedWorker))

  await backlog.open()
  const api = (await bench.start('src/main/api.ts', policyFile)).url
  const waits = await endToEnd(api, smtp, worker / 2, 5)
  console.log(
    `\nfrom the 202 to the server's acceptance at ${(worker / 2).toFixed(0)}/s (half load), ${waits.length} mails: ` +
      `p50 ${percentile(waits, 0.5)} ms, p99 ${percentile(waits, 0.99)} ms`,
  )
}

/** Rows and jobs as the API makes them, behind a gate that the rounds open and close. */
function openBacklog({ redis: redisServer, postgres, closeLater }: Bench) {
  const database = openDatabase(postgres.url, { maxConnections: 4, onError: () => {} })
  closeLater(() => database.close())
  const redis = connectRedis(redisServer.url, 'producer', () => {})
  closeLater(() => redis.disconnect())
  const store = createNoticeStore(database, { claimMs: 10_000 })
  const secrets = createSecrets(secret)
  const producer = createProducer(redis, 'postern:')
  closeLater(() => producer.close())
  const codes = createCodeStore(redis, secrets, {
    keyPrefix: 'postern:',
    ttlMs: 600_000,
    triesPerCode: 3,
  })
  const queue = new Queue(queueName('email'), {
    connection: redis,
    prefix: queuePrefix('postern:'),
  })
  closeLater(() => queue.close())

  return {
    open: () => queue.resume(),
    async close() {
      await queue.pause()
      // What is under way ends first, so that it is not in the other's round.
      while ((await queue.getActiveCount()) > 0) await sleep(20)
    },
    async fill(count: number) {
      await queue.pause()
      await Promise.all(
        Array.from({ length: count }, async () => {
          const [id, to] = [newId(), freshEmail()]
          if (kind === 'captcha') {
            const owner = { app: 'default', scene: 'login', channel: 'email' as const, to }
            await codes.remember(owner, id, '1234')
          }
          await store.insert({
            id,
            app: 'default',
            kind,
            channel: 'email',
            recipient: to,
            recipientHash: secrets.recipientHashes('email', to)[0] as Buffer,
            scene: kind === 'captcha' ? 'login' : null,
            template,
            locale: 'en',
            sealedParams: secrets.seal(JSON.stringify(params), id),
            ttlMs: 3_600_000,
          })
          await producer.add({ id, channel: 'email', kind })
        }),
      )
    },
  }
}

/** Milliseconds from each 202 to the SMTP server's acceptance, sorted. */
async function endToEnd(
  url: string,
  smtp: ChildProcess,
  rate: number,
  seconds: number,
): Promise<number[]> {
  const count = Math.floor(rate * seconds)
  await ask(smtp, { expect: count })
  const all = once(smtp, 'message')
  const agent = new Agent({ keepAlive: true, maxSockets: 128 })
  const acceptedAtMs = new Map<string, number>()
  const startMs = performance.now()
  const posts: Promise<void>[] = []
  while (posts.length < count) {
    const due = Math.min(count, ((performance.now() - startMs) / 1_000) * rate)
    while (posts.length < due) {
      const to = freshEmail()
      posts.push(post(agent, url, to).then(() => void acceptedAtMs.set(to, Date.now())))
    }
    await sleep(2)
  }
  await Promise.all(posts)
  await all
  const times = new Map((await ask(smtp, { times: true })).times)
  agent.destroy()
  return [...acceptedAtMs]
    .map(([to, ms]) => Math.max(0, (times.get(to) ?? Number.NaN) - ms))
    .sort((a, b) => a - b)
}

function post(agent: Agent, url: string, to: string): Promise<void> {
  const body = JSON.stringify({
    channel: 'email',
    to,
    ...(kind === 'captcha' ? { scene: 'login' } : { template, params }),
  })
  return new Promise((resolve, reject) => {
    const outgoing = request(`${url}/v1/${kind}s`, {
      agent,
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    })
    outgoing.on('error', reject)
    outgoing.on('response', (response) => {
      response.resume()
      if (response.statusCode === 202) response.on('end', resolve)
      else reject(new Error(`the API answered ${response.statusCode}`))
    })
    outgoing.end(body)
  })
}

interface Told {
  times?: [string, number][]
}

async function ask(child: ChildProcess, message: object): Promise<Told> {
  const answer = once(child, 'message')
  child.send(message)
  return (await answer)[0] as Told
}

function freshEmail(): string {
  return `user${emails++}@example.test`
}

function perSecond(startMs: number): number {
  return (mailsPerTurn * 1_000) / (performance.now() - startMs)
}

function policyFileFor(smtpPort: number) {
  const url = `smtp://127.0.0.1:${smtpPort}`
  return {
    policies: { captcha: [], notice: [], check: [] },
    providers: { mail: { kind: 'smtp', url, from, connections } },
    routes: { email: [{ use: ['mail'] }], sms: [] },
  }
}
