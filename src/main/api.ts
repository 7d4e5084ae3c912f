import { parseArgs } from 'node:util'
import { commandLine } from '../base/command-line.ts'
import { orUsage } from './commands/stop.ts'
import { run } from './run.ts'

/** `npm run start:api`: answers requests. Any number of them can run. */
orUsage(`Usage: ${commandLine('api')}`, () => parseArgs())
await run({ api: true, worker: false })
