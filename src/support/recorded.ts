/** Reads the lines of the recorder: refusals and checks of a recipient for support, the sample for a replay. */

import type { RedisClient } from '../base/redis-script.ts'
import { Unavailable } from '../base/unavailable.ts'
import type { Secrets } from '../crypto/secrets.ts'
import {
  type CheckResult,
  type DecisionRecord,
  placesOf,
  type Recipient,
  type RecordedRefusal,
  recordIn,
  sampleKey,
} from './record.ts'
import { livesMs } from './recorder.ts'
import { redisNowMs } from './redis-now.ts'

export interface RefusalEntry extends RecordedRefusal {
  at: Date
}

export interface CheckEntry {
  at: Date
  result: CheckResult
}

export type FindRecorded = ReturnType<typeof createFindRecorded>

export function createFindRecorded(deps: {
  redis: RedisClient
  secrets: Secrets
  keyPrefix: string
  codeTtlMs: number
}) {
  const { redis, secrets, keyPrefix, codeTtlMs } = deps

  /** The lines of a recipient in its ring, newest first. Throws Unavailable. */
  return async function findRecorded(
    recipient: Recipient,
  ): Promise<{ refusals: RefusalEntry[]; checks: CheckEntry[] }> {
    const refusals: RefusalEntry[] = []
    const checks: CheckEntry[] = []
    for (const record of await findAll(recipient)) {
      const at = new Date(record.atMs)
      if (record.kind === 'checked') checks.push({ at, result: record.result })
      if (record.kind !== 'decided' || !record.refusal) continue
      refusals.push({ at, ...record.refusal })
      // The wrong code that began a lock was compared, not refused.
      const { isOfCheck, lockBegan } = record.refusal
      if (isOfCheck && !lockBegan) checks.push({ at, result: 'refused' })
    }
    return { refusals, checks }
  }

  async function findAll(recipient: Recipient): Promise<DecisionRecord[]> {
    try {
      const places = placesOf(secrets, keyPrefix, recipient)
      const [rings, leftMs, nowMs] = await Promise.all([
        Promise.all(places.map(findIn)),
        Promise.all(places.map(({ goneKey }) => redis.pttl(goneKey))),
        redisNowMs(redis),
      ])
      const gone = leftMs.filter((ms) => ms > 0).map((ms) => goneAt(nowMs - codeTtlMs + ms))
      return [...rings.flat(), ...gone]
        .filter(({ atMs }) => atMs >= nowMs - livesMs)
        .sort((a, b) => b.atMs - a.atMs)
    } catch (error) {
      throw new Unavailable('redis', error)
    }
  }

  async function findIn({ ring, who }: { ring: string; who: string }) {
    const lines = await redis.lrange(ring, 0, -1)
    const theirs = lines.filter((line) => line.includes(`,"${who}"`)).reverse()
    return theirs.map((line) => recordIn(line, (sealed) => secrets.unsealText(sealed, who)))
  }
}

/** A check without a code has no line, only a key that lives as long as a code. */
const goneAt = (atMs: number): DecisionRecord => ({
  ...{ kind: 'checked', result: 'gone', id: '', atMs, share: 0, level: 0 },
})

const perPage = 2_000

/** The whole sample in the order of writing, and the time of Redis. */
export async function readSample(
  redis: RedisClient,
  keyPrefix: string,
): Promise<{ records: DecisionRecord[]; nowMs: number }> {
  // The list is read from its end, where new lines are added meanwhile. So a page may begin with lines of the previous
  // page.
  const lines = new Set<string>()
  for (let end = -1; ; end -= perPage) {
    const page = await redis.lrange(sampleKey(keyPrefix), end - perPage + 1, end)
    for (const line of page.reverse()) lines.add(line)
    if (page.length < perPage) break
  }
  const records = [...lines].reverse().map((line) => recordIn(line))
  return { records, nowMs: await redisNowMs(redis) }
}
