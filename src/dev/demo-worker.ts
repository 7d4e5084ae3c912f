/** The worker of the demo: a separate process, so that a visitor can kill it. It always ends together with the demo. */
import { stopOnSignals } from '../base/stop-on-signals.ts'
import { readConfigOrExit, startOrExit } from '../main/run.ts'
import { loadDemoConfig } from './demo-config.ts'

const starting = startOrExit(await readConfigOrExit(process.env, loadDemoConfig), {
  api: false,
  worker: true,
})
const end = stopOnSignals(starting)
process.on('disconnect', () => end('the demo ended', 0))
await starting
if (process.connected) process.send?.('ready')
else void end('the demo ended', 0)
