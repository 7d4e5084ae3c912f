import { run } from './run.ts'

/** `npm run start:api`: answers requests. Any number of them can run. */
await run('api')
