/**
 * `npm run bench -- statements`: what the statements of a delivery cost by the number of their rows, as processor time per
 * message of this process and of PostgreSQL. Most of a small statement that writes is its commit. The statements run one
 * after the other, so a busy machine changes nothing.
 *
 *   npx node bench/run.ts statements [--rows 1,2,4,8,16,32] [--messages 1500] [--rounds 2]
 */
import { parseArgs } from 'node:util'
import { newId } from '../src/base/ids.ts'
import { createSecrets } from '../src/crypto/secrets.ts'
import { createNoticeStore } from '../src/notice/store.ts'
import { openDatabase } from '../src/storage/database.ts'
import { openBench, secret } from './harness/bench.ts'
import { cpuMs } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '1,2,4,8,16,32' },
    messages: { type: 'string', default: '1500' },
    rounds: { type: 'string', default: '2' },
  },
})
const sizes = options.rows.split(',').map(Number)
const messages = Number(options.messages)

const bench = await openBench()
const onError = () => {}
const database = openDatabase(bench.postgres.url, { maxConnections: 10, onError, plansOnce: true })
bench.closeLater(() => database.close())
const store = createNoticeStore(database, { claimTtlMs: 10_000 })
const secrets = createSecrets(secret)
const steps = ['insert', 'read', 'claim', 'record'] as const
const used = new Map(
  steps.map((step) => [step, new Map(sizes.map((size) => [size, { nodeUs: 0, postgresUs: 0 }]))]),
)
let recipients = 0

try {
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const size of round % 2 === 0 ? sizes : sizes.toReversed()) await deliver(size)
  }
} finally {
  await bench.close()
}
const addRow = openTable(
  'µs per message: this process + PostgreSQL',
  ...sizes.map((size) => `${size} rows`.padStart(9)),
)
for (const [step, bySize] of used) {
  const perMessage = (us: number) => Math.round(us / messages / Number(options.rounds))
  addRow(
    step,
    ...[...bySize.values()].map(
      ({ nodeUs, postgresUs }) => `${perMessage(nodeUs)} + ${perMessage(postgresUs)}`,
    ),
  )
}

/** Delivers the messages in statements of `size` rows. */
async function deliver(size: number): Promise<void> {
  const weigh = async <Item, Result>(
    step: (typeof steps)[number],
    items: readonly Item[],
    run: (item: Item) => Promise<Result>,
  ) => {
    const one = used.get(step)?.get(size) as { nodeUs: number; postgresUs: number }
    const results: Result[] = []
    const beforeMs = cpuMs(bench.postgres.pid)
    const before = process.cpuUsage()
    for (let at = 0; at < items.length; at += size) {
      results.push(...(await Promise.all(items.slice(at, at + size).map(run))))
    }
    const { user, system } = process.cpuUsage(before)
    one.nodeUs += user + system
    one.postgresUs += (cpuMs(bench.postgres.pid) - beforeMs) * 1_000
    return results
  }
  const rows = Array.from({ length: messages }, () => {
    const [id, to] = [newId(), `+86138${String(recipients++).padStart(8, '0')}`]
    return {
      ...{ id, recipient: to, recipientHash: secrets.recipientHashes('sms', to)[0] as Buffer },
      ...({ app: 'default', kind: 'captcha', channel: 'sms', scene: 'login' } as const),
      ...{ template: 'captcha', locale: 'en', ttlMs: 3_600_000 },
      sealedParams: secrets.seal('{"code":"1234"}', id),
    }
  })
  await weigh('insert', rows, store.insert)
  await weigh('read', rows, ({ id }) => store.findOpen(id))
  const by = { id: newId(), provider: 'one', kind: 'webhook' }
  await weigh('claim', rows, ({ id }) => store.claim({ id, claims: 0, by }))
  const attempts = [
    {
      provider: 'one',
      kind: 'webhook',
      at: new Date().toISOString(),
      outcome: 'accepted',
      durationMs: 3,
    },
  ] as const
  await weigh('record', rows, ({ id }) =>
    store.record({
      id,
      claims: 1,
      state: 'sent',
      attempts,
      provider: 'one',
      providerMessageId: '1',
    }),
  )
}
