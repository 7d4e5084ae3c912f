/**
 * `npm run bench -- overload`: more sends than one API process can answer.
 *
 * The capacity is measured first, with a closed loop. Then sends arrive at a multiple of it, in an open loop: a send
 * does not wait for the answers before it. It goes on an idle connection, or on a new one. A client that has waited 5 s
 * closes its connection. After the load, single sends show when the process is quiet again.
 *
 *   npx node bench/run.ts overload [--times 2] [--seconds 6]
 */
import { execFile } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs, promisify } from 'node:util'
import { key, openBench } from './harness/bench.ts'
import { percentile } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const { values: options } = parseArgs({
  options: {
    times: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '6' },
  },
})
const patienceMs = 5_000
const maxConnections = 8_000

const policyFile = {
  policies: {
    captcha: [{ name: 'recipient', key: '{channel}:{to}', sliding: '5 per 1h' }],
    notice: [],
    check: [],
  },
  providers: { sandbox: { kind: 'sandbox' } },
  routes: { email: [{ use: ['sandbox'] }], sms: [{ use: ['sandbox'] }] },
}

const bench = await openBench()
try {
  const api = await bench.start('src/main/api.ts', policyFile)
  const { hostname, port } = new URL(api.url)
  await closedLoop(api.url, 4, 1)
  const capacity = await closedLoop(api.url, 4, 2)
  const load = await openLoop(hostname, Number(port), capacity * Number(options.times))
  const addRow = openTable(
    `${options.times} × capacity`,
    ...['capacity/s', 'sent/s', '202/s', '503/s', 'gave up/s', 'goodput', 'p50 ms', 'p99 ms'],
    ...['503 p50', '503 p99', 'quiet after ms'],
  )
  addRow('accepted sends', capacity.toFixed(0), ...load)
} finally {
  await bench.close()
}

async function closedLoop(url: string, seconds: number, salt: number): Promise<number> {
  const args = ['bench/load.ts', url, seconds, 64, '/v1/captchas', 'send', key, salt].map(String)
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout).perSecond
}

async function openLoop(host: string, port: number, rate: number): Promise<string[]> {
  const seconds = Number(options.seconds)
  const idle: Socket[] = []
  const tookMs = new Map<string, number[]>([
    ['202', []],
    ['503', []],
  ])
  let connections = 0
  let gaveUp = 0
  let count = 0

  /** Resolves with the status, or `lost`. */
  function send(): Promise<string> {
    const startMs = performance.now()
    const body = JSON.stringify({
      channel: 'sms',
      to: `+86137${String(count++).padStart(8, '0')}`,
      scene: 'signup',
    })
    const bytes =
      `POST /v1/captchas HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
    let socket = idle.pop()
    if (!socket) {
      if (connections >= maxConnections) return Promise.resolve('lost')
      connections += 1
      socket = connect(port, host)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.once('close', () => {
        connections -= 1
      })
    }
    const used = socket
    return new Promise((resolve) => {
      let received = ''
      const timer = setTimeout(() => {
        gaveUp += 1
        used.destroy()
      }, patienceMs)
      const closed = () => end('lost')
      function end(status: string): void {
        clearTimeout(timer)
        used.off('close', closed).off('data', read)
        tookMs.get(status)?.push(performance.now() - startMs)
        resolve(status)
      }
      function read(chunk: Buffer): void {
        received += chunk.toString('latin1')
        const headEnd = received.indexOf('\r\n\r\n')
        const length = /content-length: (\d+)/i.exec(received)?.[1]
        if (headEnd < 0 || received.length < headEnd + 4 + Number(length)) return
        if (!used.destroyed) idle.push(used)
        end(received.slice(9, 12))
      }
      used.on('close', closed).on('data', read)
      used.write(bytes)
    })
  }

  const startMs = performance.now()
  const answers: Promise<string>[] = []
  while (performance.now() - startMs < seconds * 1_000) {
    const due = ((performance.now() - startMs) / 1_000) * rate
    while (answers.length < due) answers.push(send())
    await sleep(2)
  }
  const endMs = performance.now()
  const sent = answers.length
  let quietAfterMs = Number.NaN
  while (performance.now() - endMs < 20_000) {
    const beginMs = performance.now()
    if ((await send()) === '202' && performance.now() - beginMs < 50) {
      quietAfterMs = beginMs - endMs
      break
    }
    await sleep(50)
  }
  await Promise.all(answers)
  for (const socket of idle) socket.destroy()
  const perSecond = (some: number) => (some / seconds).toFixed(0)
  const [good = [], shed = []] = [...tookMs.values()].map((some) => some.sort((a, b) => a - b))
  return [
    perSecond(sent),
    ...[good.length, shed.length, gaveUp].map(perSecond),
    `${((good.length / seconds / (rate / Number(options.times))) * 100).toFixed(0)} %`,
    ...[good, shed].flatMap((some) => [0.5, 0.99].map((at) => percentile(some, at).toFixed(0))),
    quietAfterMs.toFixed(0),
  ]
}
