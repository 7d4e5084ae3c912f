/**
 * Whose key a request carries.
 *
 * Every request carries one, so what PostgreSQL said of it is remembered for a moment: a revoked key passes
 * for less than a second more. When PostgreSQL is away or slow its last word about a key stays good, because
 * codes are checked in Redis and must stay checkable.
 *
 * Any stranger can make us look a key up. Made-up ones are refused by their checksum; those that pass
 * it share one statement at a time, on one connection of the pool, and no more than so many wait for
 * it, so that no flood of them takes PostgreSQL from valid sends (I21).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createBatcher } from '../base/batcher.ts'
import { createBoundedMap } from '../base/bounded-map.ts'
import { Overloaded, Unavailable } from '../base/problems.ts'
import type { Database } from '../storage/database.ts'
import { createKeyStore, hashOf, type NewKey } from './key-store.ts'
import { type KeyKind, keyKindOf } from './key-token.ts'
import { createLastUse } from './last-use.ts'

export interface ApiKey {
  id: string
  /** What the key may see. */
  app: string
  kind: KeyKind
  /** Where a publishable key may be used from, as browsers spell it. */
  origins: readonly string[]
}

/** How long PostgreSQL's word about a key is not asked for again: with `patienceMs`, less than a second. */
const defaultFreshMs = 700
/** And its word that there is no such key. Nobody waits for that to change. */
const defaultWrongFreshMs = 5_000
/** Wrong keys are remembered too, so a flood of one asks PostgreSQL once; the bound keeps memory flat. */
const defaultMaxWrong = 10_000
/** Unknown keys that wait for PostgreSQL's word at a time: some twenty statements' worth. */
const defaultMaxAsking = 2_000
const keysPerStatement = 100
/** Keys are asked for this often at most, however many there are; one that comes alone is asked for at once. */
const statementsApartMs = 10
/** How long a request waits to hear again of a key that is known. */
const patienceMs = 250

export function createApiKeys(
  database: Database,
  options: { freshMs?: number; wrongFreshMs?: number; maxWrong?: number; maxAsking?: number } = {},
) {
  const { freshMs = defaultFreshMs, wrongFreshMs = defaultWrongFreshMs } = options
  const { maxWrong = defaultMaxWrong, maxAsking = defaultMaxAsking } = options
  const store = createKeyStore(database)
  const noteUse = createLastUse(database)
  // Apart, so that no flood of wrong keys can push out a right one.
  const known = new Map<string, { key: ApiKey; freshUntilMs: number }>()
  const wrong = createBoundedMap<{ freshUntilMs: number }>(maxWrong)
  const asking = new Map<string, Promise<ApiKey | null>>()
  /** What this process was given by its operator: of any shape, so without a checksum. */
  const given = new Set<string>()

  const lookUp = async (hashes: readonly Buffer[]): Promise<(ApiKey | null)[]> => {
    const rows = await database.query<ApiKey & { hash: Buffer }>('api-key-find', findSql, [hashes])
    const keys = new Map(rows.map(({ hash, ...key }) => [hash.toString('hex'), key]))
    return hashes.map((hash) => keys.get(hash.toString('hex')) ?? null)
  }
  const oneAtATime = {
    run: lookUp,
    maxItems: keysPerStatement,
    maxConcurrent: 1,
    spacingMs: statementsApartMs,
  }
  // Apart, so that a key that is known never waits behind strangers.
  const lookUpKnown = createBatcher(oneAtATime)
  const lookUpStranger = createBatcher(oneAtATime)

  async function ask(token: string, isKnown: boolean): Promise<ApiKey | null> {
    // What PostgreSQL says is as old as the question.
    const askedAtMs = performance.now()
    const hash = hashOf(token)
    const key = await (isKnown ? lookUpKnown(hash) : lookUpStranger(hash))
    if (key) {
      wrong.delete(token)
      known.set(token, { key, freshUntilMs: askedAtMs + freshMs })
      return key
    }
    known.delete(token)
    wrong.set(token, { freshUntilMs: askedAtMs + wrongFreshMs })
    return null
  }

  /** What is known of a key, or what PostgreSQL says now. */
  async function look(token: string): Promise<ApiKey | null> {
    const nowMs = performance.now()
    const right = known.get(token)
    if (right && right.freshUntilMs > nowMs) return right.key
    const isWrong = wrong.get(token)
    if (isWrong && isWrong.freshUntilMs > nowMs) return null
    if (!right && !given.has(token) && !keyKindOf(token)) return null
    let answer = asking.get(token)
    if (!answer) {
      if (!right && asking.size >= maxAsking) {
        throw new Overloaded('postgresql', 'too many unknown keys are asked for')
      }
      answer = ask(token, right !== undefined).finally(() => asking.delete(token))
      asking.set(token, answer)
    }
    try {
      if (!right) return await answer
      return await Promise.race([answer, sleep(patienceMs, right.key, { ref: false })])
    } catch (error) {
      if (error instanceof Unavailable && (right || isWrong)) return right?.key ?? null
      throw error
    }
  }

  return {
    ...store,

    /** Null when there is no such key or it is revoked. Throws Unavailable when that can't be said now. */
    async find(token: string): Promise<ApiKey | null> {
      const key = await look(token)
      if (key) noteUse(key.id)
      return key
    },

    /**
     * Makes sure that this very key exists (`BOOTSTRAP_SECRET_KEY`); safe from several processes at once.
     * From now on this process takes it without a checksum, also when this call failed.
     */
    async ensure(token: string, facts: Pick<NewKey, 'name' | 'app'>): Promise<void> {
      given.add(token)
      await store.insert(token, facts)
      wrong.delete(token)
    },
  }
}

const findSql = `
  SELECT id, app, kind, origins, hash FROM api_key
  WHERE hash = ANY($1::bytea[]) AND (revoked_at IS NULL OR revoked_at > now())`
