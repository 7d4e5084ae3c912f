import { writeSync } from 'node:fs'
import { type Debugger, Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'

const { beats, blockSeconds, fileSeconds } = workerData as {
  beats: Int32Array
  blockSeconds: number
  fileSeconds: number
}

/** Counted in turns of this thread: a machine that stands still as a whole is no fault of the tests. */
let [secondsOfFile, secondsOfBeat] = [0, 0]
let [file, lastBeat] = ['', 0]

parentPort?.on('message', (next: string) => {
  file = next
  secondsOfFile = 0
})

setInterval(() => {
  const beat = Atomics.load(beats, 0)
  secondsOfBeat = beat === lastBeat ? secondsOfBeat + 1 : 0
  secondsOfFile++
  lastBeat = beat
  if (secondsOfBeat === blockSeconds) end(`its event loop has stood still for ${blockSeconds} s`)
  if (secondsOfFile === fileSeconds) end(`it runs for ${fileSeconds} s`)
}, 1_000)

/** The first place may be Node's own loop of promises, so some steps follow. */
const lookMs = 500

function end(reason: string): void {
  say(`${file}: ${reason}. The process is ended.`)
  const session = new Session()
  session.connectToMainThread()
  const [places, urls] = [new Set<string>(), new Map<string, string>()]
  const placeOf = ({ functionName, location }: Debugger.CallFrame) =>
    `    at ${functionName || '(anonymous)'} (${urls.get(location.scriptId)}:${location.lineNumber + 1})`
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url))
  session.on('Debugger.paused', ({ params }) => {
    places.add(params.callFrames.map(placeOf).join('\n'))
    session.post('Debugger.stepInto')
  })
  session.post('Debugger.enable')
  session.post('Debugger.pause')
  setTimeout(() => {
    say([...places].slice(0, 10).join('\n    then\n'))
    process.kill(process.pid, 'SIGKILL')
  }, lookMs)
}

/** The thread's own `process.stderr` is written by the thread that stands still. */
function say(line: string): void {
  writeSync(2, `${line}\n`)
}
