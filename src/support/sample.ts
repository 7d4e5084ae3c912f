/**
 * The sample of decisions that a replay decides again (`npm run policy -- replay`): one list for all processes. Its cost has
 * an upper end: a process writes once a second and so many lines at most. Above that it samples a share of the
 * recipients, halved until it fits.
 *
 * A recipient is in or out by its level, and the recipients of a smaller share are among those of a larger one. So
 * the history of a sampled recipient stays whole, and limits by recipient are replayed as they were. Refusals that
 * repeat within a turn are one record with their number: a caller that hammers costs no more than a patient one.
 */
import { createAsideWriter } from '../base/aside-writer.ts'
import type { RedisClient } from '../base/redis-script.ts'
import type { Secrets } from '../crypto/secrets.ts'
import { append } from './append.ts'
import { type DecisionRecord, sampleKey, sampleLine } from './record.ts'

const usual = {
  everyMs: 1_000,
  maxPerTurn: 50,
  /** Some 40 MB. */
  maxLines: 200_000,
  /** After so long without much to write the share doubles. */
  quietMs: 60_000,
  /** How often the share may follow how far the list reaches back. */
  lookEveryMs: 600_000,
}
/** The list should reach back so far, and need not reach further than twice that. */
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
  /** 1 of 2^share recipients is sampled; `leastShare` is what the length of the list asks for. */
  let [share, leastShare] = [0, 0]
  let [busyAtMs, writtenAtMs, lookedAtMs] = [0, 0, Number.NEGATIVE_INFINITY]
  /** Refusals of this turn, so that a repeat finds its first. */
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
    // A list that is full before a day is over needs a smaller share.
    const isFull = length > maxLines * 0.9
    if (isFull && reachesMs < wantedMs) leastShare = Math.min(leastShare + 1, smallestShare)
    if (!isFull || reachesMs > 2 * wantedMs) leastShare = Math.max(0, leastShare - 1)
    share = Math.max(share, leastShare)
  }

  return {
    /** `name`: of a refusal, the same for those that are counted as one. */
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
      // In a flood this is all that it costs.
      writer.drop()
      if (atMs - writtenAtMs < quietMs) return
      // Where nobody was recorded for so long, the report must know why. No halving takes this out.
      writtenAtMs = atMs
      writer.add({ kind: 'share', atMs, share, level: smallestShare })
    },
    close: writer.close,
  }
}

/**
 * A recipient's level: half of them have 1 or more, a quarter 2 or more, and so on up to 32. Asked for every request of a
 * flood, so it is no cryptographic hash; it tells no more of a recipient than that small number.
 */
export function createLevels(secrets: Pick<Secrets, 'subjectHashes'>) {
  const [seedText = ''] = secrets.subjectHashes(['history', 'level'])
  const seed = Buffer.from(seedText, 'base64url').readInt32BE(0)
  return (to: string): number => {
    let mixed = seed
    for (let at = 0; at < to.length; at++) mixed = Math.imul(mixed ^ to.charCodeAt(at), 0x01000193)
    // Every bit of the sum must reach the highest ones, which are counted.
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    return Math.clz32(mixed ^ (mixed >>> 16))
  }
}
