/**
 * Makes the documentation site beside the running demo, in a process of the lowest priority: the demo is there first, and
 * a build that fails costs nothing but one line.
 */
import { spawn } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { endChild } from './server-process.ts'

export interface GuideBuild {
  /** False once it has ended, well or not. */
  isUnderWay(): boolean
  readonly pid: number | undefined
  stop(): Promise<void>
}

const siteBuild = fileURLToPath(new URL('../../site/build.ts', import.meta.url))

/** Does nothing where the site is made of the pages as they are. `onFailed` gets one line. */
export function startGuideBuild(
  onFailed: (line: string) => void,
  script: string = siteBuild,
): GuideBuild {
  // In a group of its own: a Ctrl-C is the demo's to handle, and no failure of the build.
  const options = { stdio: 'ignore', detached: true } as const
  const child = spawn(process.execPath, [script, '--if-changed'], options)
  let isUnderWay = true
  const end = () => void child.kill('SIGKILL')
  process.on('exit', end)
  const ended = (isGood: boolean) => {
    process.off('exit', end)
    if (!isGood && isUnderWay) onFailed('The guide could not be built; `npm run docs` says why.')
    isUnderWay = false
  }
  child.on('error', () => ended(false))
  child.on('exit', (code) => ended(code === 0))
  try {
    if (child.pid) setPriority(child.pid, constants.priority.PRIORITY_LOW)
  } catch {
    // It has ended already.
  }
  return {
    isUnderWay: () => isUnderWay,
    pid: child.pid,
    async stop() {
      if (!isUnderWay) return
      isUnderWay = false
      await endChild(child, 'SIGKILL', 0)
    },
  }
}
