import { run } from './run.ts'

/** `npm run start:worker`: sends accepted messages. Any number of them can run. */
await run('worker')
