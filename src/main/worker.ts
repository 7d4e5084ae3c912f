import { run } from './run.ts'

/** `npm run start:worker`: sends what was accepted. Any number of these. */
await run({ api: false, worker: true })
