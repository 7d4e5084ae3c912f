/** The background tasks. Every worker runs all of them, and PostgreSQL divides the work. */
import type { Repetition } from '../base/repeat.ts'
import { type BringForwardDeps, startBringForward } from './bring-forward.ts'
import { type DispatcherDeps, startEventDispatcher } from './event-dispatcher.ts'
import { type NextWayDeps, startNextWay } from './next-way.ts'
import { type ReconcilerDeps, startReconciler } from './reconcile.ts'
import { type RetentionDeps, startRetention } from './retention.ts'

type UpkeepDeps = NextWayDeps & ReconcilerDeps & BringForwardDeps & DispatcherDeps & RetentionDeps

export function startUpkeep(deps: UpkeepDeps): Repetition {
  const tasks = [startReconciler(deps), startBringForward(deps), startRetention(deps)]
  if (deps.receivers.length > 0) tasks.push(startEventDispatcher(deps))
  const { beginDue } = deps
  if (beginDue) tasks.push(startNextWay({ ...deps, beginDue }))
  return {
    async stop() {
      await Promise.all(tasks.map((task) => task.stop()))
    },
  }
}
