/** Processes of the release before and of this one, side by side under load: the upgrade, and the way back. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject } from 'vitest'
import { type Fleet, startFleet } from '../tools/fleet.ts'
import type { StartOptions } from '../tools/processes.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { eventually } from '../tools/wait.ts'
import type { Fault, Lab } from './fault.ts'
import { callPeople } from './people.ts'

/** The commit of the release before. Each release replaces it by its own predecessor. */
const predecessor = 'a1fc1c5a'

const git = (...args: string[]) => execFileSync('git', args, { cwd: repositoryRoot })

function hasPredecessor(): boolean {
  try {
    git('cat-file', '-e', `${predecessor}^{commit}`)
    return true
  } catch {
    return false
  }
}

/** Its files, with the packages of this build. */
function checkOutPredecessor(): string {
  const folder = mkdtempSync(join(inject('runFolder'), 'predecessor-'))
  const archive = join(folder, 'files.tar')
  git('archive', '-o', archive, predecessor)
  execFileSync('tar', ['-x', '-f', archive, '-C', folder])
  symlinkSync(join(repositoryRoot, 'node_modules'), join(folder, 'node_modules'))
  execFileSync(process.execPath, ['src/dev/prepare.ts'], {
    cwd: folder,
    env: {
      ...process.env,
      PATH: `${join(repositoryRoot, 'node_modules/.bin')}:${process.env.PATH}`,
    },
  })
  return folder
}

/** Replaces workers and then API processes, two of each, in the order of docs/operations.md. */
async function replace(fleet: Fleet, lab: Lab, options: StartOptions): Promise<void> {
  for (const [running, start] of [
    [fleet.workers, fleet.startWorker],
    [fleet.apis, fleet.startApi],
  ] as const) {
    for (let left = 2; left > 0; left--) {
      await start(options)
      await sleep(lab.length(300, 5_000))
      const [old] = running.splice(0, 1)
      expect(await old?.terminate()).toBe(0)
    }
  }
}

const isThere = hasPredecessor()

const f46: Fault = {
  id: 'F46',
  breaks: `the release before is upgraded to this one under load, and back${isThere ? '' : ' (skipped: the repository lacks its commit)'}`,
  holds: 'every code arrives and passes, nothing is lost and nothing sent twice',
  proves: 'I1, I2, I8, I27',
  async prove(lab) {
    if (!isThere) return undefined
    const before = { checkout: checkOutPredecessor() }
    // Templates are files of the operator. An upgrade does not change them.
    const templates = join(before.checkout, 'templates')
    const fleet = await startFleet({ apis: 0, workers: 0, policyFile: { templates } })
    for (const start of [fleet.startApi, fleet.startWorker]) {
      await Promise.all([start(before), start(before)])
    }
    await eventually(async () => (await fleet.query('SELECT 1 FROM api_key')).length > 0)

    const people = callPeople(fleet)
    people.start((count) => people.askAndCheck(count % 2), lab.length(10, 20))
    await replace(fleet, lab, {})
    await sleep(lab.length(300, 10_000))
    await replace(fleet, lab, before)
    const passed = await people.end()

    const [rows] = await fleet.query(
      `SELECT count(*)::int AS count, count(*) FILTER (WHERE state = 'sent')::int AS sent FROM notice`,
    )
    expect(rows).toEqual({ count: passed, sent: passed })
    expect([...fleet.farEnd.taken.values()].filter((times) => times > 1)).toEqual([])
    return undefined
  },
}

export const upgradeFaults: readonly Fault[] = [f46]
