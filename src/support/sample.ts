/**
 * The sample of decisions for a replay (`npm run policy -- replay`): one list for all processes. Its cost is bounded: a
 * process writes once a second, and only a limited number of lines. Above that, it samples a share of the recipients,
 * which it halves until the lines fit.
 *
 * The level of a recipient decides whether it is sampled. Recipients of a smaller share are also in every larger share. So
 * the history of a sampled recipient is complete, and limits by recipient are replayed exactly. Equal refusals within a
 * turn are one record with their number, so a caller with many repeats costs no more than others.
 */

import type { RedisClient } from '../base/redis-script.ts'
import type { Secrets } from '../crypto/secrets.ts'
import { append } from './append.ts'
import { createAsideWriter } from './aside-writer.ts'
import { type DecisionRecord, sampleKey, sampleLine } from './record.ts'

const usual = {
  everyMs: 1_000,
  maxPerTurn: 50,
  /** Needs some 40 MB. */
  maxLines: 200_000,
  /** The share doubles after this time with few lines. */
  quietMs: 60_000,
  /** Shortest time between two changes of the share because of the list's age. */
  lookEveryMs: 600_000,
}
/** The oldest line should be this old. If it is twice as old, the share can grow. */
const wantedMs = 86_400_000
const smallestShare = 20

export type SampleLimits = Partial<typeof usual>

export function createSample(deps: {
  redis: RedisClient
  secrets: Secrets
  keyPrefix: string
  livesMs: number
  onDropped: (decisions: number) => void
  limits?: SampleLimits | undefined
}) {
  const { redis, secrets, keyPrefix, livesMs, onDropped } = deps
  const { everyMs, maxPerTurn, maxLines, quietMs, lookEveryMs } = { ...usual, ...deps.limits }
  const levelOf = createLevels(secrets)
  const key = sampleKey(keyPrefix)
  /** 1 of 2^share recipients is sampled. The length of the list decides `leastShare`, the lowest value of `share`. */
  let [share, leastShare] = [0, 0]
  let [busyAtMs, writtenAtMs, lookedAtMs] = [0, 0, Number.NEGATIVE_INFINITY]
  /** The records of the first refusals in this turn. Repeats are added to their number. */
  const firsts = new Map<string, DecisionRecord>()
  const writer = createAsideWriter<DecisionRecord>({
    everyMs,
    maxItems: maxPerTurn,
    makeRoom: halve,
    write,
    onDropped,
  })

  function halve(waiting: DecisionRecord[], { level }: DecisionRecord): boolean {
    while (waiting.length >= maxPerTurn && level >= share && share < smallestShare) {
      share += 1
      busyAtMs = performance.now()
      waiting.splice(0, waiting.length, ...waiting.filter((one) => one.level >= share))
      for (const [name, one] of firsts) if (one.level < share) firsts.delete(name)
    }
    return waiting.length < maxPerTurn && level >= share
  }

  async function write(records: readonly DecisionRecord[]): Promise<void> {
    firsts.clear()
    const nowMs = performance.now()
    writtenAtMs = nowMs
    if (records.length >= maxPerTurn / 4) busyAtMs = nowMs
    const lines = records.map((record) => {
      record.share = share
      return { key, atMs: record.atMs, text: sampleLine(record, secrets) }
    })
    const [length, reachesMs] = await append(redis, lines, { maxLines, livesMs })
    if (nowMs - lookedAtMs < lookEveryMs) return
    lookedAtMs = nowMs
    // A list that is full before a day has passed needs a smaller share of recipients.
    const isFull = length > maxLines * 0.9
    if (isFull && reachesMs < wantedMs) leastShare = Math.min(leastShare + 1, smallestShare)
    if (!isFull || reachesMs > 2 * wantedMs) leastShare = Math.max(0, leastShare - 1)
    share = Math.max(share, leastShare)
  }

  return {
    /** `name`: the same for equal refusals, which are counted as one. */
    add(to: string, atMs: number, makeRecord: () => DecisionRecord, name?: string): void {
      if (share > leastShare && atMs - busyAtMs >= quietMs) {
        share -= 1
        busyAtMs = atMs
      }
      const first = name === undefined ? undefined : firsts.get(name)
      if (first?.kind === 'decided') {
        first.times += 1
        return
      }
      const level = levelOf(to)
      if (level >= share) {
        const record = Object.assign(makeRecord(), { level })
        if (writer.add(record) && name !== undefined) firsts.set(name, record)
        return
      }
      // In a flood, a dropped line costs only this call.
      writer.drop()
      if (atMs - writtenAtMs < quietMs) return
      // This line also explains a time without records, so it is written for any share.
      writtenAtMs = atMs
      writer.add({ kind: 'share', atMs, share, level: smallestShare })
    },
    close: writer.close,
  }
}

/**
 * The level of a recipient: half of them have 1 or more, a quarter 2 or more, and so on up to 32. It is computed for every
 * request of a flood, so it is a cheap hash. It reveals only this small number.
 */
export function createLevels(secrets: Pick<Secrets, 'subjectHashes'>) {
  const [seedText = ''] = secrets.subjectHashes(['history', 'level'])
  const seed = Buffer.from(seedText, 'base64url').readInt32BE(0)
  return (to: string): number => {
    let mixed = seed
    for (let at = 0; at < to.length; at++) mixed = Math.imul(mixed ^ to.charCodeAt(at), 0x01000193)
    // Every bit of the sum must influence the highest bits, which are counted.
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    return Math.clz32(mixed ^ (mixed >>> 16))
  }
}
