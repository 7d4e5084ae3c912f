/**
 * Begins the next way of verifications whose latest way ended without success. The statement that ended it has made the
 * verification due, as events are written.
 *
 * Every worker leases some due verifications. If a worker dies, the lease ends and another worker begins the way again,
 * with the same id of the notice. So a way has one id, and its uses are counted once.
 */
import { newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { type Repetition, repeat } from '../base/repeat.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { DueVerification } from '../notice/verifications.ts'

const defaultPollMs = 500
const perPass = 50
/** Longer than any send takes: each of its steps has a deadline. */
const leaseMs = 15_000

export interface NextWayDeps {
  store: Pick<NoticeStore, 'takeDueWays'>
  /** Undefined without a workflow in the policy file. */
  beginDue: ((due: DueVerification) => Promise<void>) | undefined
  /** PostgreSQL's time. */
  nowMs: () => number
  log: Pick<Log, 'backgroundFailed'>
  /** Pause between two passes while no way is due. */
  pollMs?: number
}

export function startNextWay(
  deps: NextWayDeps & { beginDue: NonNullable<NextWayDeps['beginDue']> },
): Repetition {
  const { store, beginDue, nowMs, log, pollMs = defaultPollMs } = deps
  const failed = (error: unknown): void => log.backgroundFailed('next_way', error)

  return repeat(async () => {
    const ids = Array.from({ length: perPass }, () => newId(nowMs()))
    const taken = (await store.takeDueWays(ids, leaseMs).catch(failed)) || []
    // A way that fails is due again when its lease ends.
    await Promise.all(taken.map((due) => beginDue(due).catch(failed)))
    return taken.length === perPass ? 0 : pollMs
  }, pollMs)
}
