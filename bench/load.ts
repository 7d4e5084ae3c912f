/**
 * A closed-loop load over keep-alive connections: each sends its next request when it has its answer. It is a
 * separate process, so that the measured server has a whole core. Prints one line of JSON.
 *
 *   npx node bench/load.ts <urls, joined by commas> <seconds> <connections> <path> <body kind> <key> <salt>
 */
import { connect } from 'node:net'
import { percentile } from './harness/measure.ts'

const [urls = '', seconds = '3', connections = '64', path = '/', kind = '', key = '', salt = '0'] =
  process.argv.slice(2)
const addresses = urls.split(',').map((url) => new URL(url))

/** Salted, so that no two runs use the same recipients. */
let count = 0
const phone = (index: number) =>
  `+861${38 + (Number(salt) % 2)}${String(Number(salt) * 1_000_003 + index)
    .slice(-8)
    .padStart(8, '0')}`
const bodies: Record<string, () => unknown> = {
  send: () => ({ channel: 'sms', to: phone(count++), scene: 'signup' }),
  same: () => ({ channel: 'sms', to: '+8613900000000', scene: 'signup' }),
  right: () => ({ channel: 'sms', to: phone(count++), scene: 'signup', code: '0000' }),
  gone: () => ({ channel: 'sms', to: phone(count++), scene: 'signup', code: '0000' }),
}
const makeBody = bodies[kind]
if (!makeBody) throw new Error(`no body kind ${kind}`)

const latencies: number[] = []
const statuses = new Map<string, number>()
const untilMs = performance.now() + Number(seconds) * 1_000
const startMs = performance.now()

await Promise.all(
  Array.from({ length: Number(connections) }, (_, at) =>
    drive(addresses[at % addresses.length] as URL),
  ),
)
const tookMs = performance.now() - startMs
latencies.sort((a, b) => a - b)
console.log(
  JSON.stringify({
    perSecond: (latencies.length / tookMs) * 1_000,
    p99Ms: percentile(latencies, 0.99),
    statuses: Object.fromEntries(statuses),
  }),
)

function drive({ hostname, port }: URL): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    socket.setNoDelay(true)
    let sentMs = 0
    let received = ''
    function next() {
      if (performance.now() >= untilMs) {
        socket.destroy()
        resolve()
        return
      }
      const body = JSON.stringify(makeBody?.())
      sentMs = performance.now()
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${key}\r\n` +
          `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      )
    }
    socket.on('connect', next)
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const headEnd = received.indexOf('\r\n\r\n')
      if (headEnd < 0) return
      const length = /content-length: (\d+)/i.exec(received)?.[1]
      if (received.length < headEnd + 4 + Number(length)) return
      latencies.push(performance.now() - sentMs)
      const status = received.slice(9, 12)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      received = ''
      next()
    })
  })
}
