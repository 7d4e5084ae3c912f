/**
 * Records decisions of the limits and results of checks. Each decision becomes one record (record.ts), which is written in
 * the background. No request waits for it, and a flood costs almost nothing.
 *
 * There are two layouts. Support asks about any recipient, and may miss some lines. A replay needs whole histories, but
 * only of some recipients.
 * - Rings: the last refusals and checks of every recipient. A repeated refusal of a recipient is written only once in some
 *   seconds. The lines per second of a process are limited, and a flood of one app leaves room for other apps. The hash of
 *   a recipient names its ring, one of a fixed number. A flood of other recipients removes the oldest lines of the ring.
 * - The sample: all decisions about a share of the recipients (sample.ts).
 *
 * recorded.ts reads both. Beside them, sums by app and rule are kept for each hour (tally.ts).
 */

import { createBoundedMap } from '../base/bounded-map.ts'
import type { RedisClient } from '../base/redis-script.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Policies } from '../limiter/index.ts'
import type { Fields, OnDecided } from '../rules/quota.ts'
import { findRule, namesRecipient } from '../rules/recipient-rules.ts'
import { append, type Line } from './append.ts'
import { createAsideWriter, makeRoomAmong } from './aside-writer.ts'
import {
  type CheckedRecord,
  type CheckResult,
  type DecidedRecord,
  placesOf,
  type Recipient,
  recordOf,
  ringLine,
} from './record.ts'
import { createSample, type SampleLimits } from './sample.ts'
import { createTally } from './tally.ts'

/** 4,096 rings need at most some 30 MB; docs/operations.md has the measured figures. */
const maxLinesPerRing = 100
export const livesMs = 7 * 86_400_000
/** Time in which an equal refusal is not written again. */
const againAfterMs = 5_000
const maxRemembered = 20_000
const everyMs = 250
/** Lines per turn. Per second and process: 160 for limits of recipients, and 80 for limits that recipients share. */
const maxPersonal = 40
const maxShared = 20

/** The record is made when it is written, so a dropped entry costs nothing. */
type Entry = [recipient: Recipient, makeRecord: () => DecidedRecord | CheckedRecord]

export function createRecorder(deps: {
  redis: RedisClient
  secrets: Secrets
  keyPrefix: string
  /** The policies now in force. */
  policies: () => Policies
  codeTtlMs: number
  onDropped: (record: 'history' | 'decisions' | 'sums', lines: number) => void
  sampleLimits?: SampleLimits
}) {
  const { redis, secrets, keyPrefix, policies, codeTtlMs, onDropped, sampleLimits } = deps
  const tally = createTally({
    ...{ redis, keyPrefix },
    onDropped: (sums) => onDropped('sums', sums),
  })
  const writtenAt = createBoundedMap<number>(maxRemembered)
  const openRings = (maxItems: number) =>
    createAsideWriter<Entry>({
      everyMs,
      maxItems,
      makeRoom: makeRoomAmong(([{ app }]) => app),
      write,
      onDropped(lines) {
        onDropped('history', lines)
        tally.add({ what: 'dropped', app: '' }, lines)
      },
    })
  // Counted separately: a caller with many new recipients can fill the shared lines, and must not displace the personal
  // lines.
  const [personal, shared] = [openRings(maxPersonal), openRings(maxShared)]
  const sample = createSample({
    ...{ redis, secrets, keyPrefix, livesMs, limits: sampleLimits },
    onDropped: (lines) => onDropped('decisions', lines),
  })

  async function write(entries: readonly Entry[]): Promise<void> {
    const lines: Line[] = []
    const gone: string[] = []
    for (const [recipient, makeRecord] of entries) {
      const record = makeRecord()
      const { atMs } = record
      const [place] = placesOf(secrets, keyPrefix, recipient)
      if (!place) continue
      const { ring, goneKey, who } = place
      if (record.kind === 'checked' && record.result === 'gone') gone.push(goneKey)
      else lines.push({ key: ring, atMs, text: ringLine(record, who, secrets) })
    }
    // A stranger can check any recipient without a code. Of such checks, only the latest is kept, no longer than a code.
    await Promise.all([
      append(redis, lines, { maxLines: maxLinesPerRing, livesMs }),
      ...gone.map((key) => redis.set(key, '', 'PX', codeTtlMs)),
    ])
  }

  const isRecent = (name: string, atMs: number) =>
    atMs - (writtenAt.get(name) ?? Number.NEGATIVE_INFINITY) < againAfterMs

  const decided: OnDecided = (heard) => {
    const { policy, fields, decision } = heard
    const { app, channel, to } = fields as unknown as Recipient
    const atMs = performance.now()
    const makeRecord = () => recordOf(heard, policies(), atMs)
    if (decision.admitted) return sample.add(to, atMs, makeRecord)
    const { newLock, challenge } = decision
    const { rule: ruleName } = newLock ?? decision
    const name = `${policy} ${ruleName} ${app} ${channel} ${to}`
    sample.add(to, atMs, makeRecord, name)
    const rule = findRule(policies(), policy, ruleName)
    // The code of a guess that began a lock was compared, so that guess is not a refused check.
    if (!newLock) {
      const what = challenge ? 'challenged' : 'refused'
      tally.add({ what, app, policy: rule?.policy ?? policy, rule: ruleName })
    }
    if (!newLock && isRecent(name, atMs)) return
    const rings = rule && namesRecipient(rule) ? personal : shared
    const isTaken = rings.add([{ app, channel, to }, makeRecord])
    // The next refusal by this lock is new information, so it is written too.
    if (isTaken && !newLock) writtenAt.set(name, atMs)
  }

  return {
    /** Receives each decision of the limiter about a send or a check. */
    decided,

    /** The uses of a request were given back. */
    released({ to }: Fields, id: string): void {
      const atMs = performance.now()
      sample.add(String(to), atMs, () => ({ kind: 'released', atMs, share: 0, level: 0, id }))
    },

    /**
     * Receives the result of a check. A refused guess is recorded as a refusal of the limiter. A refused check without a
     * code is not recorded.
     */
    checked(
      { app, channel, to }: Recipient,
      id: string,
      { result, noticeId: sentId }: { result: CheckResult; noticeId?: string },
    ): void {
      const atMs = performance.now()
      const name = `gone ${app} ${channel} ${to}`
      if (result === 'refused' || (result === 'gone' && isRecent(name, atMs))) return
      const facts = { atMs, share: 0, level: 0, result, id, sentId }
      const makeRecord = () => ({ kind: 'checked', ...facts }) as const
      if (result === 'passed') {
        sample.add(to, atMs, makeRecord)
        tally.add({ what: 'passed', app })
      }
      // The tries of a code bound the number of other results.
      const isTaken = personal.add([{ app, channel, to }, makeRecord])
      if (isTaken && result === 'gone') writtenAt.set(name, atMs)
    },

    async close(): Promise<void> {
      await Promise.all([personal.close(), shared.close(), sample.close()])
      await tally.close()
    },
  }
}
