/**
 * Finds the API key of a request.
 *
 * Every request carries a key, so PostgreSQL's answer is cached for a moment. A revoked key works for less than a
 * second more. While PostgreSQL is away or slow, its last answer for a known key stays valid: codes are in Redis and
 * must stay checkable. PostgreSQL returns the time that is left until the end of a key, so no key outlives its end.
 *
 * Any stranger can cause look-ups. Made-up keys fail their checksum. The rest share one statement at a time on one
 * connection of the pool, and the number of waiting keys is limited. So a flood of them can't take PostgreSQL from
 * valid sends (I21).
 */
import { createBatcher } from '../base/batcher.ts'
import { createBoundedMap } from '../base/bounded-map.ts'
import { orLate } from '../base/deadline.ts'
import { Overloaded, Unavailable } from '../base/unavailable.ts'
import type { Database } from '../storage/database.ts'
import { createKeyStore, endsAt, hashOf, isActive, type NewKey } from './key-store.ts'
import { type KeyKind, keyKindOf } from './key-token.ts'

export interface ApiKey {
  id: string
  /** The app whose data the key can see. */
  app: string
  kind: KeyKind
  /** Origins where a publishable key may be used, as browsers spell them. */
  origins: readonly string[]
}

/** `endsInMs`: null for a key without an end. */
type FoundKey = ApiKey & { endsInMs: number | null }

const defaults = {
  /** Cache time for a valid key. Together with `patienceMs` it is less than a second. */
  freshMs: 700,
  /** Cache time for an unknown key. It may be long: keys are random, so an unknown text does not become a key later. */
  wrongFreshMs: 5_000,
  /** Unknown keys are cached too, so a flood of one key causes one look-up. The bound limits memory. */
  maxWrong: 10_000,
  /** The most unknown keys that wait for PostgreSQL. Twenty statements look up this number. */
  maxAsking: 2_000,
}
const lastUseEveryMs = 60_000
const keysPerStatement = 100
/** The least time between two look-up statements. A lone key is looked up at once. */
const statementsApartMs = 10
/** How long a request with a cached key waits for a fresh answer. */
const patienceMs = 250

export type ApiKeys = ReturnType<typeof createApiKeys>

export function createApiKeys(database: Database, options: Partial<typeof defaults> = {}) {
  const { freshMs, wrongFreshMs, maxWrong, maxAsking } = { ...defaults, ...options }
  const store = createKeyStore(database)
  const noteUse = createLastUse(database)
  // A separate map, so that a flood of wrong keys can't remove a right key.
  const known = new Map<string, { key: ApiKey; freshUntilMs: number; endsAtMs: number }>()
  const wrong = createBoundedMap<{ freshUntilMs: number }>(maxWrong)
  const asking = new Map<string, Promise<ApiKey | null>>()
  /** Keys from the operator's environment. They may have any form, so they need no checksum. */
  const given = new Set<string>()

  const lookUp = async (hashes: readonly Buffer[]): Promise<(FoundKey | null)[]> => {
    const rows = await database.query<FoundKey & { hash: Buffer }>('api-key-find', findSql, [
      hashes,
    ])
    const keys = new Map(rows.map(({ hash, ...key }) => [hash.toString('hex'), key]))
    return hashes.map((hash) => keys.get(hash.toString('hex')) ?? null)
  }
  const oneAtATime = {
    run: lookUp,
    maxItems: keysPerStatement,
    maxConcurrent: 1,
    spacingMs: statementsApartMs,
  }
  // Separate, so that a known key never waits behind unknown ones.
  const lookUpKnown = createBatcher(oneAtATime)
  const lookUpStranger = createBatcher(oneAtATime)

  async function ask(token: string, isKnown: boolean): Promise<ApiKey | null> {
    // The age of an answer counts from the start of its query.
    const askedAtMs = performance.now()
    const hash = hashOf(token)
    const found = await (isKnown ? lookUpKnown(hash) : lookUpStranger(hash))
    if (found) {
      const { endsInMs, ...key } = found
      const endsAtMs = askedAtMs + (endsInMs ?? Number.POSITIVE_INFINITY)
      wrong.delete(token)
      known.set(token, { key, freshUntilMs: askedAtMs + freshMs, endsAtMs })
      return key
    }
    known.delete(token)
    wrong.set(token, { freshUntilMs: askedAtMs + wrongFreshMs })
    return null
  }

  /** The cached key, or PostgreSQL's answer now. */
  async function look(token: string): Promise<ApiKey | null> {
    const nowMs = performance.now()
    const right = known.get(token)
    if (right && right.endsAtMs <= nowMs) return null
    if (right && right.freshUntilMs > nowMs) return right.key
    const isWrong = wrong.get(token)
    if (isWrong && isWrong.freshUntilMs > nowMs) return null
    if (!right && !given.has(token) && !keyKindOf(token)) return null
    let answer = asking.get(token)
    if (!answer) {
      if (!right && asking.size >= maxAsking) {
        throw new Overloaded('postgresql', 'too many unknown keys wait for a look-up')
      }
      answer = ask(token, right !== undefined).finally(() => asking.delete(token))
      asking.set(token, answer)
    }
    try {
      if (!right) return await answer
      return await orLate(answer, patienceMs, () => right.key)
    } catch (error) {
      if (error instanceof Unavailable && (right || isWrong)) return right?.key ?? null
      throw error
    }
  }

  return {
    ...store,
    warmUp: lookUpStranger.warmUp,

    /**
     * The key of a request, whose use is recorded. Null for an unknown or revoked key. Throws Unavailable if the state of
     * the key is not known now.
     */
    async authenticate(token: string): Promise<ApiKey | null> {
      const key = await look(token)
      if (key) noteUse(key.id)
      return key
    },

    /** The key by PostgreSQL's last answer, which may be old. For refusals that the key cannot change. */
    lastKnown: (token: string): ApiKey | undefined => known.get(token)?.key,

    /**
     * Creates this key if it is missing (`BOOTSTRAP_SECRET_KEY`). Several processes may call it at once. From then on
     * this process accepts the key without a checksum, even if this call failed.
     */
    async ensure(token: string, facts: Pick<NewKey, 'name' | 'app'>): Promise<void> {
      given.add(token)
      await store.insert(token, facts)
      wrong.delete(token)
    },
  }
}

const findSql = `
  SELECT id, app, kind, origins, hash, (extract(epoch FROM ${endsAt} - now()) * 1000)::float8 AS "endsInMs"
  FROM api_key WHERE hash = ANY($1::bytea[]) AND ${isActive}`

/**
 * Records when a key was last used, for people who want to revoke one. A process writes at most once a minute per
 * key. No request waits for it or fails because of it. Call the returned function for existing
 * keys only: invented keys would cost statements and memory.
 */
function createLastUse(database: Database): (keyId: string) => void {
  const notedAtMs = new Map<string, number>()
  const write = createBatcher<string, void>({
    run: async (ids) => void (await database.query('api-key-used', lastUsedSql, [ids])),
    maxItems: 100,
    maxConcurrent: 1,
  })

  return (keyId) => {
    const nowMs = performance.now()
    const before = notedAtMs.get(keyId)
    if (before !== undefined && nowMs - before < lastUseEveryMs) return
    notedAtMs.set(keyId, nowMs)
    // A failed write is not repeated. The key's next use, a minute later, is written.
    write(keyId).catch(() => {})
  }
}

// Another process may have written it just now.
const lastUsedSql = `
  UPDATE api_key SET last_used_at = now()
  WHERE id = ANY($1::uuid[]) AND (last_used_at IS NULL OR last_used_at < now() - interval '30 seconds')`
