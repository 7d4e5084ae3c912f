/**
 * Question: how much of what a nodemailer pool can send does a worker send, with everything that makes
 * a notice certain (claim, render, limits, record, queue) around each mail?
 *
 * One SMTP server in a process of its own, the same mail, the same number of connections; rounds of the
 * bare pool and of one worker process take turns, and the medians are compared. A round of the worker
 * begins with rows and jobs already there and the queue opened, and ends when the server has them all.
 * Then half of the worker's rate is sent through one API process, and each mail is timed from the 202
 * to the server's acceptance.
 *
 *   node bench/delivery.ts [rounds] [mails per round]
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Queue } from 'bullmq'
import nodemailer from 'nodemailer'
import { SMTPServer } from 'smtp-server'
import { newId } from '../src/base/ids.ts'
import { createSecrets } from '../src/base/secrets.ts'
import { openDatabase } from '../src/db/database.ts'
import { migrate } from '../src/db/migrate.ts'
import { startPrivatePostgres, startPrivateRedis } from '../src/main/private-servers.ts'
import { findFreePort } from '../src/main/server-process.ts'
import { createNoticeStore } from '../src/notice/store.ts'
import { queueName, queuePrefix } from '../src/queue/contract.ts'
import { createProducer } from '../src/queue/producer.ts'
import { connectRedis } from '../src/redis/connect.ts'
import { loadTemplates } from '../src/templates/templates.ts'

const rounds = Number(process.argv[2] ?? 5)
const mailsPerRound = Number(process.argv[3] ?? 2_000)
const connections = 5
const inFlight = 50
const from = 'Acme <no-reply@acme.test>'
const secret = 'a secret for the benchmark, 32 bytes or more'
const key = 'psk_benchmark_key_0123456789'
let emails = 0
const templates = join(import.meta.dirname, '../templates')

if (process.argv[2] === 'smtp') serveSmtp()
else await main()

/** Counts, and tells when a round's mails are all there; each mail's time is kept by its recipient. */
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

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-'))
  const children: ChildProcess[] = []
  const [redisServer, postgresServer] = await Promise.all([
    startPrivateRedis({ dataDir: join(folder, 'redis') }),
    startPrivatePostgres({ dataDir: join(folder, 'postgres') }),
  ])
  const closers: (() => unknown)[] = []
  try {
    await compare()
  } finally {
    for (const close of closers.reverse()) await close()
    for (const child of children) child.kill('SIGKILL')
    await Promise.all([redisServer.stop(), postgresServer.stop()])
    rmSync(folder, { recursive: true, force: true })
  }

  async function compare(): Promise<void> {
    await migrate(postgresServer.url)
    const smtp = fork(import.meta.filename, ['smtp'])
    children.push(smtp)
    const [{ port }] = (await once(smtp, 'message')) as [{ port: number }]
    writeFileSync(join(folder, 'postern.yaml'), policyFile(port))

    const pool = nodemailer.createTransport({
      pool: true,
      host: '127.0.0.1',
      port,
      maxConnections: connections,
      maxMessages: Number.POSITIVE_INFINITY,
    })
    closers.push(() => pool.close())
    const rendered = loadTemplates(templates).render('welcome', 'email', 'en', { name: 'Ada' })
    const { subject, text } = rendered

    const carrier = openCarrier()
    const workerPid = (await startProcess('src/main/worker.ts')).pid

    async function bareRound(): Promise<number> {
      await ask(smtp, { expect: mailsPerRound })
      const all = once(smtp, 'message')
      let left = mailsPerRound
      const startMs = performance.now()
      const loop = async () => {
        while (left-- > 0) await pool.sendMail({ from, to: freshEmail(), subject, text })
      }
      await Promise.all(Array.from({ length: inFlight }, loop))
      await all
      return perSecond(startMs)
    }

    async function workerRound(): Promise<number> {
      await ask(smtp, { expect: mailsPerRound })
      const all = once(smtp, 'message')
      const startMs = performance.now()
      await carrier.open()
      await all
      const rate = perSecond(startMs)
      await carrier.close()
      return rate
    }

    const watched = {
      'bare pool': process.pid,
      worker: workerPid,
      smtp: smtp.pid as number,
      redis: redisServer.pid,
      postgres: postgresServer.pid,
    }
    /** Runs a round and adds up what each process used in it. */
    async function weighed(round: () => Promise<number>, used: Record<string, number>) {
      const before = Object.values(watched).map(cpuMsOf)
      const rate = await round()
      Object.entries(watched).forEach(([name, pid], index) => {
        used[name] = (used[name] ?? 0) + cpuMsOf(pid) - (before[index] as number)
      })
      return rate
    }
    const usedBare: Record<string, number> = {}
    const usedWorker: Record<string, number> = {}

    const rates: { bare: number[]; worker: number[] } = { bare: [], worker: [] }
    for (let round = 0; round <= rounds; round++) {
      const bare = await weighed(bareRound, round > 0 ? usedBare : {})
      await carrier.fill(mailsPerRound)
      const worker = await weighed(workerRound, round > 0 ? usedWorker : {})
      // The first round warms up.
      if (round === 0) continue
      rates.bare.push(bare)
      rates.worker.push(worker)
    }
    const [bare, worker] = [median(rates.bare), median(rates.worker)]
    console.log(
      `| medians of ${rounds} rounds of ${mailsPerRound} mails, ${connections} connections | mails/s | ratio |`,
    )
    console.log('|---|---|---|')
    console.log(`| nodemailer pool alone, ${inFlight} in flight | ${bare.toFixed(0)} | 1.00 |`)
    console.log(`| one worker | ${worker.toFixed(0)} | ${(worker / bare).toFixed(2)} |`)

    const microseconds = (used: Record<string, number>) =>
      Object.entries(used)
        .filter(([name]) => name !== (used === usedBare ? 'worker' : 'bare pool'))
        .map(([name, ms]) => `${name} ${Math.round((ms * 1_000) / rounds / mailsPerRound)}`)
        .join(', ')
    console.log(`CPU microseconds per mail, bare: ${microseconds(usedBare)}`)
    console.log(`CPU microseconds per mail, worker: ${microseconds(usedWorker)}`)

    await carrier.open()
    const api = (await startProcess('src/main/api.ts')).url
    const waits = await endToEnd(api, smtp, worker / 2, 5)
    console.log(
      `from the 202 to the server's acceptance at ${(worker / 2).toFixed(0)}/s (half load), ${waits.length} mails: ` +
        `p50 ${at(waits, 0.5)} ms, p99 ${at(waits, 0.99)} ms`,
    )
  }

  /** Rows and jobs as the API makes them, behind a gate that the rounds open and close. */
  function openCarrier() {
    const database = openDatabase(postgresServer.url, { maxConnections: 4, onError: () => {} })
    closers.push(() => database.close())
    const redis = connectRedis(redisServer.url, 'producer', () => {})
    closers.push(() => redis.disconnect())
    const store = createNoticeStore(database, { claimMs: 10_000 })
    const secrets = createSecrets(secret)
    const producer = createProducer(redis, 'postern:')
    closers.push(() => producer.close())
    const queue = new Queue(queueName('email'), {
      connection: redis,
      prefix: queuePrefix('postern:'),
    })
    closers.push(() => queue.close())

    return {
      open: () => queue.resume(),
      async close() {
        await queue.pause()
        // What is under way ends first, so that it is not in the other's round.
        while ((await queue.getActiveCount()) > 0) await new Promise((done) => setTimeout(done, 20))
      },
      async fill(count: number) {
        await queue.pause()
        await Promise.all(
          Array.from({ length: count }, async () => {
            const [id, to] = [newId(), freshEmail()]
            await store.create({
              id,
              app: 'default',
              kind: 'notice',
              channel: 'email',
              recipient: to,
              recipientHash: secrets.recipientHashes('email', to)[0] as Buffer,
              scene: null,
              template: 'welcome',
              locale: 'en',
              sealedParams: secrets.seal(JSON.stringify({ name: 'Ada' }), id),
              ttlMs: 3_600_000,
            })
            await producer.add({ id, channel: 'email', kind: 'notice' })
          }),
        )
      },
    }
  }

  async function startProcess(file: string): Promise<{ url: string; pid: number }> {
    const ports = [await findFreePort(), await findFreePort()]
    const child = spawn(process.execPath, [file], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH,
        NODE_ENV: 'production',
        PORT: String(ports[0]),
        ADMIN_PORT: String(ports[1]),
        HOST: '127.0.0.1',
        DATABASE_URL: postgresServer.url,
        REDIS_URL: redisServer.url,
        SECRET: secret,
        BOOTSTRAP_SECRET_KEY: key,
        POSTERN_CONFIG: join(folder, 'postern.yaml'),
        ...(process.env.WORKER_PROFILE && file.includes('worker')
          ? { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${process.env.WORKER_PROFILE}` }
          : {}),
      },
    })
    children.push(child)
    await once(child.stdout, 'data')
    child.stdout.resume()
    if (process.env.WORKER_PROFILE && file.includes('worker')) {
      closers.push(async () => {
        child.kill('SIGTERM')
        await once(child, 'exit')
      })
    }
    return { url: `http://127.0.0.1:${ports[0]}`, pid: child.pid as number }
  }
}

/** CPU milliseconds a process and its children have used, where the system tells. */
function cpuMsOf(pid: number): number {
  if (!existsSync('/proc/self/stat')) return Number.NaN
  let ticks = 0
  for (const entry of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const isOurs = Number(entry) === pid || Number(fields[1]) === pid
      if (isOurs) ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // It ended while we looked.
    }
  }
  return ticks * 10
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
    await new Promise((done) => setTimeout(done, 2))
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
    template: 'welcome',
    params: { name: 'Ada' },
  })
  return new Promise((resolve, reject) => {
    const outgoing = request(`${url}/v1/notices`, {
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
  return (mailsPerRound * 1_000) / (performance.now() - startMs)
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
}

function policyFile(smtpPort: number): string {
  return `
policies: { captcha: [], notice: [], check: [] }
templates: ${JSON.stringify(templates)}
providers:
  mail: { kind: smtp, url: "smtp://127.0.0.1:${smtpPort}", from: "${from}", connections: ${connections} }
routes:
  email: [{ use: [mail] }]
  sms: []
`
}
