/**
 * `npm run bench -- overload`: more sends than one API process can answer.
 *
 * The capacity is measured first, with a closed loop. Then sends arrive at a multiple of it, in an open loop
 * (open-load.ts). On a shared machine the capacity moves, so it is measured again at the end, and the mean counts.
 * Servers by hand get such a load too: one that refuses before Express what it cannot answer, and one that refuses
 * everything. They show what is possible on this machine.
 *
 * `µs` is processor time per request of the open loop: of the server, of Redis and PostgreSQL, and of the load. `load
 * late` is the p99 of the delays with which the load itself ran. They are in all times, so a row with long delays does
 * not measure the server.
 *
 *   npx node bench/run.ts overload [--times 2] [--seconds 6] [--only postern]
 *   … --api ../other-checkout/src/main/api.ts    another build
 */
import { execFile } from 'node:child_process'
import { parseArgs, promisify } from 'node:util'
import { key, openBench } from './harness/bench.ts'
import { cpuMs } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const { values: options } = parseArgs({
  options: {
    times: { type: 'string', default: '2' },
    seconds: { type: 'string', default: '6' },
    only: { type: 'string', default: '' },
    api: { type: 'string', default: 'src/main/api.ts' },
  },
})

const policyFile = {
  policies: {
    captcha: [{ name: 'recipient', key: '{channel}:{to}', sliding: '5 per 1h' }],
    notice: [],
    check: [],
  },
  providers: { sandbox: { kind: 'sandbox' } },
  routes: { email: [{ use: ['sandbox'] }], sms: [{ use: ['sandbox'] }] },
}

/** The last one refuses each request, at the rate of the one before. */
const contenders: Record<string, { file: string; path: string }> = {
  postern: { file: options.api, path: '/v1/captchas' },
  'the same work by hand': { file: 'bench/targets/hand-written.ts', path: '/whole-or-503' },
  'refusals by hand': { file: 'bench/targets/hand-written.ts', path: '/refuse' },
}

const bench = await openBench()
try {
  const addRow = openTable(
    `${options.times} × capacity`,
    ...['capacity/s', 'sent/s', '202/s', '503/s', 'lost/s', 'goodput', 'p50 ms', 'p99 ms'],
    ...[
      '503 p50',
      '503 p99',
      'quiet after ms',
      'µs server',
      'µs stores',
      'µs load',
      'load late ms',
    ],
  )
  let capacity = 0
  for (const [name, { file, path }] of Object.entries(contenders)) {
    if (!name.includes(options.only)) continue
    const server = await bench.start(file, policyFile)
    const isRefusing = path === '/refuse'
    if (isRefusing) await closedLoop(server.url, path, 1, 1)
    else {
      await closedLoop(server.url, path, 4, 1)
      capacity = await closedLoop(server.url, path, 2, 2)
    }
    const stores = () => cpuMs(bench.redis.pid) + cpuMs(bench.postgres.pid)
    const before = [cpuMs(server.pid), stores()] as const
    const rate = capacity * Number(options.times)
    const load = await run('bench/open-load.ts', server.url, path, options.seconds, rate, key, 0)
    const used = [cpuMs(server.pid) - before[0], stores() - before[1]]
    if (!isRefusing) capacity = (capacity + (await closedLoop(server.url, path, 2, 3))) / 2
    const { sent, accepted, refused, other, gaveUp, unsent, quietAfterMs } = load
    const perSecond = (count: number) => (count / Number(options.seconds)).toFixed(0)
    addRow(
      name,
      capacity.toFixed(0),
      ...[sent, accepted.count, refused.count, other + gaveUp + unsent].map(perSecond),
      `${((accepted.count / Number(options.seconds) / capacity) * 100).toFixed(0)} %`,
      ...[accepted.p50, accepted.p99, refused.p50, refused.p99].map(toFixed),
      isRefusing ? '–' : toFixed(quietAfterMs),
      ...used.map((ms) => ((ms * 1_000) / sent).toFixed(0)),
      load.cpuUsPerRequest.toFixed(0),
      load.lateMs.toFixed(0),
    )
    await server.stop()
  }
} finally {
  await bench.close()
}

function toFixed(value: number | null): string {
  return value === null ? '–' : value.toFixed(0)
}

async function closedLoop(url: string, path: string, seconds: number, salt: number) {
  const load = await run('bench/load.ts', url, seconds, 64, path, 'send', key, salt)
  return load.perSecond as number
}

async function run(...args: (string | number)[]) {
  const { stdout } = await promisify(execFile)(process.execPath, args.map(String))
  return JSON.parse(stdout)
}
