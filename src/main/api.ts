import { run } from './run.ts'

/** `npm run start:api`: answers requests. Any number of these. */
await run({ api: true, worker: false })
