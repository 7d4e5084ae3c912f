/**
 * The one recorder of what the limits decide and what checks find. Each decision is heard once, becomes one record
 * (record.ts), and is written aside: nobody waits for it, and a flood pays for nothing here.
 *
 * The lines lie in two layouts: support asks about any recipient and may miss some lines, while a replay needs whole
 * histories, of which those of some recipients suffice.
 * - Rings: the last refusals and checks of every recipient. The same refusal of the same recipient is written once in a
 *   while, a process writes so many lines a second, and one app's flood leaves room for other apps. A recipient's hash
 *   says which of a fixed number of rings has its lines; what a flood of others pushes out is the oldest of that ring.
 * - The sample: everything that was decided about a share of the recipients (sample.ts).
 *
 * recorded.ts reads both.
 */
import { createAsideWriter, makeRoomAmong } from '../base/aside-writer.ts'
import { createBoundedMap } from '../base/bounded-map.ts'
import type { RedisClient } from '../base/redis-script.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Policies } from '../limiter/index.ts'
import type { Fields, OnDecided } from '../rules/quota.ts'
import { findRule, namesRecipient } from '../rules/recipient-rules.ts'
import { append, type Line } from './append.ts'
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

/** With 4,096 rings some 30 MB of small lines at most; docs/operations.md has the measured figures. */
const maxLinesPerRing = 100
export const livesMs = 7 * 86_400_000
/** The same refusal is not written again within it. */
const againAfterMs = 5_000
const maxRemembered = 20_000
const everyMs = 250
/** Per turn: 160 a second and process about recipients themselves, and 80 of rules they share with others. */
const maxPersonal = 40
const maxShared = 20

/** Its record is made when it is written: a dropped one costs none. */
type Entry = [recipient: Recipient, makeRecord: () => DecidedRecord | CheckedRecord]

export function createRecorder(deps: {
  redis: RedisClient
  secrets: Secrets
  keyPrefix: string
  /** The rules as they are now. */
  policies: () => Policies
  codeTtlMs: number
  onDropped: (record: 'history' | 'decisions', lines: number) => void
  sampleLimits?: SampleLimits
}) {
  const { redis, secrets, keyPrefix, policies, codeTtlMs, onDropped, sampleLimits } = deps
  const writtenAt = createBoundedMap<number>(maxRemembered)
  const openRings = (maxItems: number) =>
    createAsideWriter<Entry>({
      everyMs,
      maxItems,
      makeRoom: makeRoomAmong(([{ app }]) => app),
      write,
      onDropped: (lines) => onDropped('history', lines),
    })
  // Apart: who runs into a shared limit with ever new recipients must not crowd out what recipients did.
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
    // A stranger can check any recipient where no code lives: of these the latest is kept, no longer than a code.
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
    const name = `${policy} ${decision.rule} ${app} ${channel} ${to}`
    sample.add(to, atMs, makeRecord, name)
    if (!decision.isNewLock && isRecent(name, atMs)) return
    const rule = findRule(policies(), policy, decision.rule)
    const rings = rule && namesRecipient(rule) ? personal : shared
    const isTaken = rings.add([{ app, channel, to }, makeRecord])
    // What the lock refuses from now on is another fact.
    if (isTaken && !decision.isNewLock) writtenAt.set(name, atMs)
  }

  return {
    /** Of the limiter: what it decided about a send or a check. */
    decided,

    /** What a request took was given back. */
    released({ to }: Fields, id: string): void {
      const atMs = performance.now()
      sample.add(String(to), atMs, () => ({ kind: 'released', atMs, share: 0, level: 0, id }))
    },

    /** The result of a check; one that was refused is told by the limiter's refusal. */
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
      if (result === 'passed') sample.add(to, atMs, makeRecord)
      // A code's tries bound the others.
      const isTaken = personal.add([{ app, channel, to }, makeRecord])
      if (isTaken && result === 'gone') writtenAt.set(name, atMs)
    },

    /** Writes what waits. */
    async close(): Promise<void> {
      await Promise.all([personal.close(), shared.close(), sample.close()])
    },
  }
}
