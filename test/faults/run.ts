/**
 * The commands of this folder:
 *
 *   npm run faults -- F12 --seed 7           one fault in its full form (all faults without a number)
 *   npm run faults -- F12 --short            the form of the suite
 *   npm run chaos -- --minutes 10 --aof no   random faults under a steady load
 *   npm run chaos -- --cluster               the same over a Redis Cluster of three masters
 *   npm run chaos -- --calm --minutes 3      no fault: slow far ends, and nothing may go wrong
 */
import { parseArgs } from 'node:util'
import { startVitest } from 'vitest/node'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    short: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '200' },
    aof: { type: 'string', default: 'yes' },
    cluster: { type: 'boolean', default: false },
    calm: { type: 'boolean', default: false },
  },
})
const [command, ...ids] = positionals
process.env.FAULT_SEED = values.seed
process.env.FAULT_FORM = values.short ? 'short' : 'full'
process.env.CHAOS_MINUTES = values.minutes
process.env.TEST_FILE_SECONDS = String(Number(values.minutes) * 60 + 900)
process.env.CHAOS_RATE = values.rate
process.env.CHAOS_AOF = values.aof
if (values.cluster) process.env.CHAOS_CLUSTER = 'yes'
if (values.calm) process.env.CHAOS_CALM = 'yes'

const vitest = await startVitest('test', [], {
  run: true,
  watch: false,
  project: [command === 'chaos' ? 'chaos' : 'faults'],
  disableConsoleIntercept: true,
  fileParallelism: false,
  ...(ids.length > 0 ? { testNamePattern: new RegExp(`^(${ids.join('|')}):`) } : {}),
})
await vitest.close()
