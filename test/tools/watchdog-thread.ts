import { writeSync } from 'node:fs'
import { type Debugger, Session } from 'node:inspector'
import { parentPort, workerData } from 'node:worker_threads'

const { beats, spinSeconds, blockSeconds, fileSeconds } = workerData as {
  beats: Int32Array
  spinSeconds: number
  blockSeconds: number
  fileSeconds: number
}

/** Counted in turns of this thread: a machine that stands still as a whole is no fault of the tests. */
let [secondsOfFile, secondsOfBeat] = [0, 0]
let [file, lastBeat, workedSeconds] = ['', 0, 0]
let hasEnded = false

parentPort?.on('message', (next: string) => {
  file = next
  secondsOfFile = 0
})

setInterval(() => {
  const beat = Atomics.load(beats, 0)
  secondsOfFile++
  secondsOfBeat++
  if (beat !== lastBeat) [secondsOfBeat, workedSeconds] = [0, processorSeconds()]
  lastBeat = beat
  if (hasEnded) return
  if (processorSeconds() - workedSeconds > spinSeconds) {
    end(`its event loop has stood still for ${spinSeconds} s of work`)
  } else if (secondsOfBeat > blockSeconds)
    end(`its event loop has stood still for ${blockSeconds} s`)
  else if (secondsOfFile > fileSeconds) end(`it runs for ${fileSeconds} s`)
}, 1_000)

function processorSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000_000
}

/** The first place may be Node's own loop of promises, so some steps follow. */
const steps = 10
const longestLookMs = 10_000

function end(reason: string): void {
  hasEnded = true
  say(`${file}: ${reason}. The process is ended.`)
  const session = new Session()
  session.connectToMainThread()
  const urls = new Map<string, string>()
  const placeOf = ({ functionName, location }: Debugger.CallFrame) =>
    `    at ${functionName || '(anonymous)'} (${urls.get(location.scriptId)}:${location.lineNumber + 1})`
  let count = 0
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url))
  session.on('Debugger.paused', ({ params }) => {
    say(params.callFrames.map(placeOf).join('\n'))
    if (++count === steps) kill()
    say('    then')
    session.post('Debugger.stepInto')
  })
  session.post('Debugger.enable')
  session.post('Debugger.pause')
  setTimeout(kill, longestLookMs)
}

const kill = () => process.kill(process.pid, 'SIGKILL')

/** The thread's own `process.stderr` is written by the thread that stands still. */
function say(line: string): void {
  writeSync(2, `${line}\n`)
}
