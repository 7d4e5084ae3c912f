/**
 * An open-loop load: sends arrive at a rate, and do not wait for the answers before them. Each goes on an idle
 * connection, or on a new one. A client that has waited 5 s closes its connection. After the load, single sends show
 * when the server is quiet again. It is a separate process, and cheap for the processor that it shares with the server.
 * Prints one line of JSON.
 *
 * With a channel, it also prints the recipients with the time of the first byte, and ends with the load.
 *
 *   npx node bench/open-load.ts <url> <path> <seconds> <rate> <key> <salt> [sms | email]
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { monotonicMs, percentile } from './harness/measure.ts'

const [url = '', path = '/', seconds = '6', rate = '100', key = '', salt = '0', channel] =
  process.argv.slice(2)
const { hostname, port } = new URL(url)
const patienceMs = 5_000
const maxConnections = 8_000

interface Client {
  socket: Socket
  isOpen: boolean
  /** 0: no answer is due. */
  sentMs: number
  received: string
  onAnswer?: ((status: string) => void) | undefined
}

const tookMs = { '202': [] as number[], '503': [] as number[], other: [] as number[] }
const idle: Client[] = []
/** Every request that was sent, oldest first. `at`: the first that may be without an answer. */
const waiting: { client: Client; sentMs: number }[] = []
let at = 0
let connections = 0
let count = 0
let gaveUp = 0
let unsent = 0

const head =
  `POST ${path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${key}\r\n` +
  'content-type: application/json\r\ncontent-length: '
const pressedAtMs: [to: string, ms: number][] = []
function request(): string {
  const number = String(Number(salt) * 50_000 + count++).padStart(8, '0')
  const to = channel === 'email' ? `user${number}@example.test` : `+86137${number}`
  const body = `{"channel":"${channel ?? 'sms'}","to":"${to}","scene":"signup"}`
  if (channel) pressedAtMs.push([to, monotonicMs()])
  return `${head}${body.length}\r\n\r\n${body}`
}

/** All sockets are read one after the other, so they share one buffer. */
const buffer = Buffer.alloc(16_384)

function open(): Client {
  connections += 1
  const socket = connect({
    host: hostname,
    port: Number(port),
    noDelay: true,
    onread: {
      buffer,
      callback(length) {
        read(client, buffer.toString('latin1', 0, length))
        return true
      },
    },
  })
  const client: Client = { socket, isOpen: true, sentMs: 0, received: '' }
  socket.on('error', () => {})
  socket.once('end', () => {
    client.isOpen = false
  })
  socket.once('close', () => {
    client.isOpen = false
    connections -= 1
    if (client.sentMs > 0) answered(client, 'lost')
  })
  return client
}

function read(client: Client, text: string): void {
  client.received += text
  const { received } = client
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd < 0) return
  const lengthAt = received.search(/content-length: /i)
  const length = lengthAt < 0 ? 0 : Number.parseInt(received.slice(lengthAt + 16, headEnd), 10)
  if (received.length < headEnd + 4 + length) return
  client.received = ''
  if (/\r\nconnection: close/i.test(received.slice(0, headEnd))) client.isOpen = false
  if (client.sentMs > 0) answered(client, received.slice(9, 12))
  if (client.isOpen) idle.push(client)
}

function answered(client: Client, status: string): void {
  const took = performance.now() - client.sentMs
  client.sentMs = 0
  if (status === '202' || status === '503') tookMs[status].push(took)
  else tookMs.other.push(took)
  client.onAnswer?.(status)
}

/** Undefined if there are too many connections. */
function send(): Client | undefined {
  let client = idle.pop()
  while (client && !client.isOpen) client = idle.pop()
  if (!client) {
    if (connections >= maxConnections) {
      unsent += 1
      return undefined
    }
    client = open()
  }
  client.sentMs = performance.now()
  waiting.push({ client, sentMs: client.sentMs })
  client.socket.write(request(), 'latin1')
  return client
}

function giveUpOld(): void {
  const beforeMs = performance.now() - patienceMs
  for (; at < waiting.length; at++) {
    const { client, sentMs } = waiting[at] as (typeof waiting)[number]
    if (client.sentMs !== sentMs) continue
    if (sentMs > beforeMs) return
    gaveUp += 1
    client.sentMs = 0
    client.isOpen = false
    client.socket.destroy()
    client.onAnswer?.('gave up')
  }
}

const giving = setInterval(giveUpOld, 20)
const startMs = performance.now()
const started = process.cpuUsage()
let sent = 0
const delaysMs: number[] = []
while (performance.now() - startMs < Number(seconds) * 1_000) {
  const turnMs = performance.now()
  const due = ((turnMs - startMs) / 1_000) * Number(rate)
  for (; sent < due; sent++) send()
  await sleep(1)
  delaysMs.push(performance.now() - turnMs)
}
const endMs = performance.now()
const used = process.cpuUsage(started)
const quietAfterMs = channel ? Number.NaN : await untilQuiet()
while (at < waiting.length) {
  giveUpOld()
  await sleep(20)
}
clearInterval(giving)

const figuresOf = (some: number[]) => {
  const sorted = some.toSorted((a, b) => a - b)
  return { count: sorted.length, p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) }
}
const line = {
  sent,
  accepted: figuresOf(tookMs['202']),
  refused: figuresOf(tookMs['503']),
  other: tookMs.other.length,
  gaveUp,
  unsent,
  quietAfterMs,
  lateMs: figuresOf(delaysMs).p99,
  cpuUsPerRequest: (used.user + used.system) / sent,
  pressedAtMs,
}
process.stdout.write(`${JSON.stringify(line)}\n`, () => process.exit(0))

/** The time until a single send is accepted within 50 ms. */
async function untilQuiet(): Promise<number> {
  while (performance.now() - endMs < 20_000) {
    const beginMs = performance.now()
    const status = await new Promise<string>((resolve) => {
      const client = send()
      if (!client) return resolve('unsent')
      client.onAnswer = (answer) => {
        client.onAnswer = undefined
        resolve(answer)
      }
    })
    if (path === '/refuse') return Number.NaN
    if (status === '202' && performance.now() - beginMs < 50) return beginMs - endMs
    await sleep(50)
  }
  return Number.NaN
}
