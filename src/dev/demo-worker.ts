/** The demo's worker: a process of its own, so that it can be killed like one. It ends with the demo, however that ends. */
import { endInOrder } from '../base/end-in-order.ts'
import { readConfigOrExit, startOrExit } from '../main/run.ts'
import { loadDemoConfig } from './demo-config.ts'

const starting = startOrExit(await readConfigOrExit(process.env, loadDemoConfig), {
  api: false,
  worker: true,
})
const end = endInOrder(starting)
process.on('disconnect', () => end('the demo is gone', 0))
await starting
if (process.connected) process.send?.('ready')
else void end('the demo is gone', 0)
