/**
 * Records what was decided, so that a changed policy file can be tried on it (`npm run policy -- replay`).
 *
 * Nobody waits for it, and there is an end to what it costs: a process writes once a second and so many records at most,
 * into one stream of so many records. Above that it records a share of the recipients, halved until it fits. A
 * recipient is in or out by its level, and those of a smaller share are among those of the larger: so
 * the history of who is recorded stays whole, and limits by recipient are replayed as they were. Refusals that repeat
 * within a second are one record with their number: a caller that hammers costs no more than a patient one.
 */

import { loadScript, type RedisClient } from '../base/redis-script.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { OnDecided } from '../rules/quota.ts'
import {
  createHashes,
  createLevels,
  type DecidedRecord,
  type DecisionRecord,
  encode,
  type Outcome,
} from './record.ts'

export type Recorder = ReturnType<typeof createRecorder>

/** Where the records lie. */
export const decisionsKey = (keyPrefix: string) => `${keyPrefix}decisions`

const everyMs = 1_000
const maxPerTurn = 50
/** Some 40 MB. */
const maxRecords = 200_000
const livesMs = 7 * 86_400_000
/** The record should reach back so far, and need not reach further than twice that. */
const wantedMs = 86_400_000
/** How often the share may follow how far the record reaches back. */
const turnsPerLook = 600
/** So many turns in a row with a quarter of the room used double the share. */
const quietTurns = 60
const smallestShare = 20
const turnsPerTelling = 60

const script = loadScript('decisions-1')

export function createRecorder(deps: {
  redis: RedisClient
  secrets: Secrets
  keyPrefix: string
  onDropped: (decisions: number) => void
  limits?: { everyMs?: number; maxPerTurn?: number; maxRecords?: number }
}) {
  const { redis, secrets, keyPrefix, onDropped } = deps
  const bounds = { everyMs, maxPerTurn, maxRecords, ...deps.limits }
  const hashOf = createHashes(secrets)
  const levelOf = createLevels(secrets)
  const key = decisionsKey(keyPrefix)
  /** What waits for its turn; refusals under a name, so that a repeat finds its first. */
  let waiting = new Map<string, { level: number; record: DecisionRecord }>()
  let [share, toldShare, smallestBySize, calmTurns, turns] = [0, 0, 0, 0, 0]
  let dropped = 0
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let writing: Promise<void> = Promise.resolve()

  function add(name: string, level: number, record: DecisionRecord): void {
    waiting.set(name, { level, record })
    while (waiting.size > bounds.maxPerTurn && share < smallestShare) halve()
    if (waiting.size > bounds.maxPerTurn && waiting.delete(name)) dropped += 1
    schedule()
  }

  function schedule(): void {
    timer ??= setTimeout(() => {
      writing = turn()
    }, bounds.everyMs).unref()
  }

  function halve(): void {
    share += 1
    for (const [name, { level, record }] of waiting) {
      if (level >= share) continue
      waiting.delete(name)
      if (record.kind === 'decided') dropped += record.times
    }
  }

  async function turn(): Promise<void> {
    const nowMs = performance.now()
    const records = [...waiting.values()].map(({ record }) => record)
    waiting = new Map()
    turns += 1
    // Also when nobody is recorded, the report must know why.
    if (share !== toldShare || (share > 0 && turns % turnsPerTelling === 0)) {
      records.push({ kind: 'share', atMs: nowMs, share })
      toldShare = share
    }
    try {
      if (records.length > 0) await write(records, nowMs)
    } catch {
      dropped += records.length
    }
    if (dropped > 0) onDropped(dropped)
    dropped = 0
    calmTurns = records.length < bounds.maxPerTurn / 4 ? calmTurns + 1 : 0
    if (calmTurns >= quietTurns && share > smallestBySize) {
      share -= 1
      calmTurns = 0
    }
    timer = undefined
    if (!isClosed && (waiting.size > 0 || share > 0)) schedule()
  }

  async function write(records: readonly DecisionRecord[], nowMs: number): Promise<void> {
    const [length, reachesMs] = (await script.run(
      redis,
      [key],
      [
        bounds.maxRecords,
        livesMs,
        ...records.flatMap((record) => [
          Math.round(nowMs - record.atMs),
          encode({ ...record, share }, hashOf),
        ]),
      ],
    )) as [number, number]
    followSize(length, reachesMs)
  }

  /** A stream that is full before a day is over needs a smaller share. */
  function followSize(length: number, reachesMs: number): void {
    if (turns % turnsPerLook !== 1) return
    const isFull = length > bounds.maxRecords * 0.9
    if (isFull && reachesMs < wantedMs) smallestBySize = Math.min(smallestBySize + 1, smallestShare)
    if (!isFull || reachesMs > 2 * wantedMs) smallestBySize = Math.max(0, smallestBySize - 1)
    share = Math.max(share, smallestBySize)
  }

  const decided: OnDecided = ({ policy, fields, requestId, decision, isSolved }) => {
    if (isClosed) return
    const to = String(fields.to)
    const name = decision.admitted ? requestId : `${policy} ${decision.rule} ${fields.app} ${to}`
    const first = waiting.get(name)?.record
    if (first?.kind === 'decided') {
      first.times += 1
      return
    }
    const level = levelOf(to)
    if (level < share) {
      // Told once a turn: in a flood this is all that it costs.
      dropped += 1
      return
    }
    const outcome: Outcome = decision.admitted
      ? 'admitted'
      : { rule: decision.rule, isAsked: decision.challenge === true }
    const atMs = performance.now()
    const record: DecidedRecord = {
      kind: 'decided',
      ...{ atMs, times: 1, policy, id: requestId, outcome, isSolved, fields, share, level },
    }
    add(name, level, record)
  }

  return {
    /** Of the limiter. */
    decided,

    /** What a request took was given back. */
    released(to: string, requestId: string): void {
      const level = levelOf(to)
      if (isClosed || level < share) return
      const atMs = performance.now()
      add(`x ${requestId}`, level, { kind: 'released', atMs, id: requestId, share })
    },

    /** A check passed by the code of a notice. */
    passed(to: string, requestId: string, noticeId: string): void {
      const level = levelOf(to)
      if (isClosed || level < share) return
      const atMs = performance.now()
      add(`p ${requestId}`, level, { kind: 'passed', atMs, id: requestId, sentId: noticeId, share })
    },

    /** Writes what waits. */
    async close(): Promise<void> {
      isClosed = true
      clearTimeout(timer)
      await writing
      if (waiting.size > 0) await turn()
    },
  }
}
