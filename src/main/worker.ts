import { parseArgs } from 'node:util'
import { commandLine } from '../base/command-line.ts'
import { orUsage } from './commands/stop.ts'
import { run } from './run.ts'

/** `npm run start:worker`: sends accepted messages. Any number of them can run. */
orUsage(`Usage: ${commandLine('worker')}`, () => parseArgs())
await run({ api: false, worker: true })
