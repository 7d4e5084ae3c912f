/**
 * The last refusals and checks of a recipient, so that support can say why a code did not come. Rows of
 * PostgreSQL tell what was sent; what was refused has none, because a refusal must cost nothing.
 *
 * A flood pays for nothing here, and one at an app's page leaves room for other apps. The same refusal of the same recipient is written once in a while, a process
 * writes so many entries a second and drops the rest, and all of it lies in a fixed number of rings in Redis:
 * a recipient's hash says which ring, and the entries in it begin with more of that hash. So the memory is bounded
 * whatever is sent, and what a flood of other recipients pushes out is the oldest of their ring.
 *
 * Nobody is readable: a recipient is a keyed hash, and what a rule counts beside the recipient (the address a lock is
 * for) is sealed.
 */
import { createAsideWriter } from '../base/aside-writer.ts'
import { createBoundedMap } from '../base/bounded-map.ts'
import type { Channel } from '../base/channel.ts'
import { Unavailable } from '../base/problems.ts'
import { loadScript, type RedisClient } from '../base/redis-script.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Policies } from '../limiter/index.ts'
import { isCheckPolicy } from '../rules/policies.ts'
import type { OnDecided } from '../rules/quota.ts'
import { findRule, namesRecipient, valuesBeside } from '../rules/recipient-rules.ts'

/** Whose history it is: another app's is another one. */
export interface Recipient {
  app: string
  channel: Channel
  to: string
}

export interface RefusalEntry {
  at: Date
  /** The policy that the rule is declared in. */
  policy: string
  rule: string
  window: string
  retryAfterMs: number
  /** Only asked for a challenge, which the caller had not solved. */
  challenge?: true
  /** A lock that began with the wrong code which used up the limit: that code was compared, and nothing was refused yet. */
  lockBegan?: true
  /** What the rule counts by beside what is known of a recipient, where it names the recipient. */
  values?: readonly string[]
}

export const checkResults = ['passed', 'mismatch', 'gone', 'refused'] as const
export type CheckResult = (typeof checkResults)[number]

export interface CheckEntry {
  at: Date
  result: CheckResult
}

export type History = ReturnType<typeof createHistory>

type What =
  | [tag: string, kind: 'refused' | 'asked' | 'locked', ...refusal: Stored]
  | [tag: string, kind: 'checked', result: CheckResult]
type Stored = [policy: string, rule: string, window: string, retryAfterMs: number, sealed?: string]

interface Entry {
  recipient: Recipient
  happenedAt: number
  /** Made when it is written: a dropped one costs no sealing. Absent of a check without a code, see `checked`. */
  what?: (tag: string) => What
}

const livesMs = 7 * 86_400_000
/** With 4,096 rings some 30 MB of small entries at most; docs/operations.md has the measured figures. */
const maxEntriesPerRing = 100
const ringNameLength = 2
const tagLength = 10
/** The same refusal is not written again within it. */
const againAfterMs = 5_000
const maxRemembered = 20_000
const everyMs = 250
/** Per turn: 160 a second and process about recipients themselves, and 80 of rules they share with others. */
const maxPersonal = 40
const maxShared = 20

const script = loadScript('history-N')
const goneCheck: What = ['', 'checked', 'gone']

export function createHistory(deps: {
  redis: RedisClient
  secrets: Secrets
  keyPrefix: string
  /** The rules as they are now. */
  policies: () => Policies
  codeTtlMs: number
  onDropped: (entries: number) => void
}) {
  const { redis, secrets, keyPrefix, policies, codeTtlMs, onDropped } = deps
  const writtenAt = createBoundedMap<number>(maxRemembered)
  const writer = (maxItems: number) =>
    createAsideWriter<Entry>({
      everyMs,
      maxItems,
      ownerOf: ({ recipient }) => recipient.app,
      write,
      onDropped,
    })
  // Apart: who runs into a shared limit with ever new recipients must not crowd out what recipients did.
  const personal = writer(maxPersonal)
  const shared = writer(maxShared)

  /** One place per secret in use, the current one's first. */
  const placesOf = ({ app, channel, to }: Recipient) =>
    secrets.subjectHashes(['history', app, channel, to]).map((hash) => ({
      ring: `${keyPrefix}history:{${hash.slice(0, ringNameLength)}}`,
      tag: hash.slice(ringNameLength, ringNameLength + tagLength),
      goneKey: `${keyPrefix}gone:${hash}`,
    }))

  async function write(entries: readonly Entry[]): Promise<void> {
    const nowMs = performance.now()
    const gone: string[] = []
    const written = entries.flatMap(({ recipient, happenedAt, what }) => {
      const [place] = placesOf(recipient)
      const { ring = '', tag = '', goneKey = '' } = place ?? {}
      if (what) return { ring, args: [Math.round(nowMs - happenedAt), JSON.stringify(what(tag))] }
      gone.push(goneKey)
      return []
    })
    await Promise.all(gone.map((key) => redis.set(key, '', 'PX', codeTtlMs)))
    if (written.length === 0) return
    // In a cluster the keys of one call must lie together, which rings do not.
    const calls = redis.isCluster ? written.map((one) => [one]) : [written]
    await Promise.all(
      calls.map((call) => {
        const keys = call.map(({ ring }) => ring)
        return script.run(redis, keys, [
          maxEntriesPerRing,
          livesMs,
          ...call.flatMap(({ args }) => args),
        ])
      }),
    )
  }

  function isRecent(key: string, nowMs: number): boolean {
    return nowMs - (writtenAt.get(key) ?? Number.NEGATIVE_INFINITY) < againAfterMs
  }

  const decided: OnDecided = ({ policy, fields, decision }) => {
    if (decision.admitted) return
    const { app, channel, to } = fields as unknown as Recipient
    const { window, retryAfterMs } = decision
    const key = `${policy} ${decision.rule} ${app} ${channel} ${to}`
    const nowMs = performance.now()
    if (!decision.isNewLock && isRecent(key, nowMs)) return
    const rule = findRule(policies(), policy, decision.rule)
    if (!rule) return
    const values = valuesBeside(rule, fields)
    const entry: Entry = {
      recipient: { app, channel, to },
      happenedAt: nowMs,
      what: (tag) => {
        const kind = decision.challenge ? 'asked' : decision.isNewLock ? 'locked' : 'refused'
        const refusal: Stored = [rule.policy, rule.name, window, retryAfterMs]
        if (values) refusal.push(secrets.seal(JSON.stringify(values), tag).toString('base64url'))
        return [tag, kind, ...refusal]
      },
    }
    const isTaken = (namesRecipient(rule) ? personal : shared).add(entry)
    // What the lock refuses from now on is another fact.
    if (isTaken && !decision.isNewLock) writtenAt.set(key, nowMs)
  }

  return {
    /** Of the limiter: refusals are kept. */
    decided,

    /**
     * The result of a check; one that was refused is told by the limiter's refusal. A stranger can check any recipient where no code
     * lives: of these the latest is kept, in a key of its own that lives no longer than a code.
     */
    checked({ app, channel, to }: Recipient, result: CheckResult): void {
      if (result === 'refused') return
      const recipient = { app, channel, to }
      const happenedAt = performance.now()
      // A code's tries bound the others.
      if (result !== 'gone') {
        personal.add({ recipient, happenedAt, what: (tag) => [tag, 'checked', result] })
        return
      }
      const key = `gone ${app} ${channel} ${to}`
      if (isRecent(key, happenedAt)) return
      if (personal.add({ recipient, happenedAt })) writtenAt.set(key, happenedAt)
    },

    /** What its ring still holds of it, newest first. Throws Unavailable. */
    async find(recipient: Recipient): Promise<{ refusals: RefusalEntry[]; checks: CheckEntry[] }> {
      const refusals: RefusalEntry[] = []
      const checks: CheckEntry[] = []
      for (const { at, what } of await findAll(recipient)) {
        if (what[1] === 'checked') {
          checks.push({ at, result: what[2] })
          continue
        }
        const [tag, kind, policy, rule, window, retryAfterMs, sealed] = what
        const values = sealed === undefined ? undefined : unsealed(sealed, tag)
        refusals.push({
          ...{ at, policy, rule, window, retryAfterMs },
          ...(kind === 'asked' ? { challenge: true } : {}),
          ...(kind === 'locked' ? { lockBegan: true } : {}),
          ...(values ? { values } : {}),
        })
        // A lock that a wrong guess began refused nobody yet.
        if (isCheckPolicy(policy) && kind !== 'locked') checks.push({ at, result: 'refused' })
      }
      return { refusals, checks }
    },

    async close(): Promise<void> {
      await Promise.all([personal.close(), shared.close()])
    },
  }

  async function findAll(recipient: Recipient): Promise<{ at: Date; what: What }[]> {
    try {
      const places = placesOf(recipient)
      const [rings, leftMs, [seconds, micros]] = await Promise.all([
        Promise.all(places.map(findIn)),
        Promise.all(places.map(({ goneKey }) => redis.pttl(goneKey))),
        redis.time(),
      ])
      const nowMs = Number(seconds) * 1_000 + Number(micros) / 1_000
      const gone = leftMs
        .filter((ms) => ms > 0)
        .map((ms) => ({ at: new Date(nowMs - codeTtlMs + ms), what: goneCheck }))
      return rings
        .flat()
        .filter(({ at }) => at.getTime() >= nowMs - livesMs)
        .concat(gone)
        .sort((a, b) => b.at.getTime() - a.at.getTime())
    } catch (error) {
      throw new Unavailable('redis', error)
    }
  }

  async function findIn({ ring, tag }: { ring: string; tag: string }) {
    const lines = await redis.lrange(ring, 0, -1)
    return lines
      .reverse()
      .filter((line) => line.includes(`["${tag}"`))
      .map((line) => {
        const start = line.indexOf('[')
        const at = new Date(Number(line.slice(0, start)))
        return { at, what: JSON.parse(line.slice(start)) as What }
      })
  }

  /** Undefined when its secret is gone. */
  function unsealed(sealed: string, tag: string): string[] | undefined {
    try {
      return JSON.parse(secrets.unseal(Buffer.from(sealed, 'base64url'), tag))
    } catch {
      return undefined
    }
  }
}
