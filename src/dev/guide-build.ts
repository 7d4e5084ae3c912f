/**
 * Builds the documentation site while the demo runs, in a process of the lowest priority. The demo does not wait for it,
 * and a failed build only prints one line.
 */
import { spawn } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { endChild } from './server-process.ts'

export type GuideBuild = ReturnType<typeof startGuideBuild>

const siteBuild = fileURLToPath(new URL('../../site/build.ts', import.meta.url))

/** Does nothing if the site is up to date. `onFailed` gets one line. */
export function startGuideBuild(onFailed: (line: string) => void, script = siteBuild) {
  // A separate process group, so that Ctrl-C reaches only the demo. Otherwise it would look like a failed build.
  const options = { stdio: 'ignore', detached: true } as const
  const child = spawn(process.execPath, [script, '--if-changed'], options)
  let isUnderWay = true
  const end = () => void child.kill('SIGKILL')
  process.on('exit', end)
  const ended = (isGood: boolean) => {
    process.off('exit', end)
    if (!isGood && isUnderWay)
      onFailed('The guide could not be built. Run `npm run docs` to see the error.')
    isUnderWay = false
  }
  child.on('error', () => ended(false))
  child.on('exit', (code) => ended(code === 0))
  try {
    if (child.pid) setPriority(child.pid, constants.priority.PRIORITY_LOW)
  } catch {
    // The process has already ended.
  }
  return {
    /** False when the build has ended, also after a failure. */
    isUnderWay: () => isUnderWay,
    pid: child.pid,
    async stop(): Promise<void> {
      if (!isUnderWay) return
      isUnderWay = false
      await endChild(child, 'SIGKILL', 0)
    },
  }
}
