/** A flood of one kind in a separate thread; see keyless.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { flood, keylessKinds } from './flood.ts'

const { url, kind, options } = workerData
const next = keylessKinds[kind]
if (!next) throw new Error(`there is no kind ${kind}`)
parentPort?.postMessage(await flood(url, { ...options, next }))
