/**
 * How many messages per second does a worker send, compared with a bare client? The worker also claims, renders,
 * limits, records and queues each message. The client is a nodemailer pool for mail, and undici for a provider over
 * HTTP.
 *
 * Both use one far end in a separate process, the same message, and the same number of connections. Each round starts
 * a new process of each, warms both up, and measures one after the other. V8 compiles the same code differently in
 * each process, by up to a third, so the medians of the rounds are compared. A turn of the worker begins with
 * existing rows and jobs when the queue opens, and ends when the far end has all messages. At the end, one API
 * process gets half of the worker's rate. Each of these messages is timed from its 202 to its acceptance.
 *
 * `captcha` is a mail with text and HTML. Its code is stored in Redis and settled before the send. `welcome` is a
 * notice with text alone. Over HTTP it is a text message of the kind `webhook`.
 *
 *   npx node bench/delivery.ts [rounds] [messages per turn] [captcha | welcome] [smtp | http]
 */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import nodemailer from 'nodemailer'
import { Pool } from 'undici'
import { newId } from '../src/base/ids.ts'
import { signWebhook } from '../src/crypto/standard-webhooks.ts'
import { loadTemplates } from '../test/tools/load-templates.ts'
import { openBacklog } from './harness/backlog.ts'
import { type Bench, key, openBench, repository } from './harness/bench.ts'
import { serveHttp, serveSmtp } from './harness/far-end.ts'
import { cpuMs, median, percentile } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const rounds = Number(process.argv[2] ?? 5)
const perTurn = Number(process.argv[3] ?? 2_000)
const template = process.argv[4] ?? 'captcha'
const kind = template === 'captcha' ? 'captcha' : 'notice'
const params: Record<string, string> =
  kind === 'captcha' ? { code: '1234', validity: '5 minutes' } : { name: 'Ada' }
/** The way of a message: its far end, the bare client, and the worker's provider. */
const carriers = {
  smtp: {
    bare: 'nodemailer pool alone',
    channel: 'email',
    connections: 5,
    inFlight: 50,
    serve: serveSmtp,
    open: openPool,
    providerAt: smtpAt,
  },
  http: {
    bare: 'undici alone',
    channel: 'sms',
    connections: 20,
    inFlight: 50,
    serve: serveHttp,
    open: openUndici,
    providerAt: webhookAt,
  },
} as const
const carrierName = process.argv[5] === 'http' ? 'http' : 'smtp'
const { channel, connections, inFlight, ...carrier } = carriers[carrierName]
const from = 'Acme <no-reply@acme.test>'
const webhookSecret = 'a secret of the far end'
let recipients = 0

type Send = (to: string) => Promise<unknown>

if (process.argv[6] === 'far-end') serveFarEnd()
else if (process.argv[6] === 'bare') serveBare(Number(process.argv[7]))
else await main()

/** Counts messages, and reports when all of a turn have arrived. Keeps each arrival time by recipient. */
function serveFarEnd(): void {
  let count = 0
  let wanted = Number.POSITIVE_INFINITY
  const acceptedAtMs = new Map<string, number>()
  const server = carrier.serve((to) => {
    count++
    acceptedAtMs.set(to, Date.now())
    if (count === wanted) process.send?.({ all: true })
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
    process.send?.({ port: (server.address() as AddressInfo).port })
  })
  process.on('disconnect', () => process.exit())
}

/** The bare client. Sends one message to each recipient in the list that it gets. */
function serveBare(port: number): void {
  const send = carrier.open(port)
  process.on('message', async ({ recipients }: { recipients: string[] }) => {
    const loop = async () => {
      for (let to = recipients.pop(); to; to = recipients.pop()) await send(to)
    }
    await Promise.all(Array.from({ length: inFlight }, loop))
  })
  process.on('disconnect', () => process.exit())
}

function rendered() {
  return loadTemplates(join(repository, 'templates')).render(template, channel, 'en', params)
}

function openPool(port: number): Send {
  const pool = nodemailer.createTransport({
    pool: true,
    host: '127.0.0.1',
    port,
    maxConnections: connections,
    maxMessages: Number.POSITIVE_INFINITY,
  })
  const mail = rendered()
  return (to) => pool.sendMail({ from, to, ...mail })
}

/** Signs the request and reads the answer, as the provider must. */
function openUndici(port: number): Send {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections })
  const { text: sms } = rendered()
  return async (to) => {
    const noticeId = newId()
    const body = JSON.stringify({ noticeId, channel, to, template, locale: 'en', text: sms })
    const headers = {
      'content-type': 'application/json',
      ...signWebhook(webhookSecret, noticeId, Date.now(), body),
    }
    const answer = await pool.request({ method: 'POST', path: '/', headers, body })
    return answer.body.json()
  }
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
  const fork = (...role: (string | number)[]) =>
    bench.fork(import.meta.filename, [rounds, perTurn, template, carrierName, ...role])
  const farEnd = fork('far-end')
  const [{ port }] = (await once(farEnd, 'message')) as [{ port: number }]
  const policyFile = policyFileFor(port)
  const backlog = openBacklog(bench, { channel, kind, template, params }, freshRecipient)

  async function turn(start: () => unknown): Promise<number> {
    await ask(farEnd, { expect: perTurn })
    const all = once(farEnd, 'message')
    const startMs = performance.now()
    await start()
    await all
    return perSecond(startMs)
  }

  async function bareTurn(bare: ChildProcess): Promise<number> {
    const recipients = Array.from({ length: perTurn }, freshRecipient)
    return turn(() => bare.send({ recipients }))
  }

  async function workerTurn(): Promise<number> {
    const rate = await turn(() => backlog.open())
    await backlog.close()
    return rate
  }

  /** Runs a turn and sums the processor time of each process. */
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
    farEnd: farEnd.pid as number,
    redis: bench.redis.pid,
    postgres: bench.postgres.pid,
  }
  const usedBare: Record<string, number> = {}
  const usedWorker: Record<string, number> = {}
  const rates: { bare: number[]; worker: number[] } = { bare: [], worker: [] }
  for (let round = 0; round < rounds; round++) {
    await backlog.fill(perTurn)
    const bareClient = fork('bare', port)
    const worker = await bench.start('src/main/worker.ts', policyFile)
    await bareTurn(bareClient)
    await workerTurn()
    await backlog.fill(perTurn)
    const ownBare = { sender: bareClient.pid as number, ...shared }
    rates.bare.push(await weighed(() => bareTurn(bareClient), ownBare, usedBare))
    rates.worker.push(await weighed(workerTurn, { sender: worker.pid, ...shared }, usedWorker))
    bareClient.disconnect()
    // The last worker is warm. It also measures the times from the 202.
    if (round < rounds - 1) await worker.stop()
  }
  const [bare, worker] = [median(rates.bare), median(rates.worker)]
  const addRow = openTable(
    `${template} over ${carrierName}: medians of ${rounds} rounds, ${perTurn} a turn, ${connections} connections`,
    'per second',
    'ratio',
    'sender µs',
    'ratio of µs',
    'server µs',
    'Redis µs',
    'PostgreSQL µs',
  )
  function microseconds(used: Record<string, number>) {
    const [sender = 0, ...others] = Object.values(used).map((ms) =>
      Math.round((ms * 1_000) / rounds / perTurn),
    )
    return [sender, ((usedBare.sender ?? 0) / (used.sender ?? 0)).toFixed(2), ...others]
  }
  const ratio = (worker / bare).toFixed(2)
  addRow(
    `${carrier.bare}, ${inFlight} in flight`,
    bare.toFixed(0),
    '1.00',
    ...microseconds(usedBare),
  )
  addRow('one worker', worker.toFixed(0), ratio, ...microseconds(usedWorker))

  await backlog.open()
  const api = (await bench.start('src/main/api.ts', policyFile)).url
  const waits = await endToEnd(api, farEnd, worker / 2, 5)
  console.log(
    `\nfrom the 202 to the server's acceptance at ${(worker / 2).toFixed(0)}/s (half load), ${waits.length} messages: ` +
      `p50 ${percentile(waits, 0.5)} ms, p99 ${percentile(waits, 0.99)} ms`,
  )
}

/** Milliseconds from each 202 to its acceptance by the far end, sorted. */
async function endToEnd(
  url: string,
  farEnd: ChildProcess,
  rate: number,
  seconds: number,
): Promise<number[]> {
  const count = Math.floor(rate * seconds)
  await ask(farEnd, { expect: count })
  const all = once(farEnd, 'message')
  const agent = new Agent({ keepAlive: true, maxSockets: 128 })
  const acceptedAtMs = new Map<string, number>()
  const startMs = performance.now()
  const posts: Promise<void>[] = []
  while (posts.length < count) {
    const due = Math.min(count, ((performance.now() - startMs) / 1_000) * rate)
    while (posts.length < due) {
      const to = freshRecipient()
      posts.push(post(agent, url, to).then(() => void acceptedAtMs.set(to, Date.now())))
    }
    await sleep(2)
  }
  await Promise.all(posts)
  await all
  const times = new Map((await ask(farEnd, { times: true })).times)
  agent.destroy()
  return [...acceptedAtMs]
    .map(([to, ms]) => Math.max(0, (times.get(to) ?? Number.NaN) - ms))
    .sort((a, b) => a - b)
}

function post(agent: Agent, url: string, to: string): Promise<void> {
  const body = JSON.stringify({
    channel,
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

function freshRecipient(): string {
  const number = recipients++
  return channel === 'email'
    ? `user${number}@example.test`
    : `+86138${String(number).padStart(8, '0')}`
}

function perSecond(startMs: number): number {
  return (perTurn * 1_000) / (performance.now() - startMs)
}

function smtpAt(port: number) {
  const url = `smtp://127.0.0.1:${port}`
  return { kind: 'smtp', url, from, connections: carriers.smtp.connections }
}

function webhookAt(port: number) {
  return { kind: 'webhook', url: `http://127.0.0.1:${port}`, secret: webhookSecret }
}

function policyFileFor(port: number) {
  return {
    policies: { captcha: [], notice: [], check: [] },
    providers: { one: carrier.providerAt(port) },
    routes: { email: [], sms: [], [channel]: [{ use: ['one'] }] },
    delivery: { concurrency: connections },
  }
}
