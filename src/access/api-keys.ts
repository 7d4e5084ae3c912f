/**
 * API keys. A key holds 32 random bytes and is shown once; the database holds its SHA-256, which is
 * enough for a secret that can't be guessed and costs a microsecond.
 *
 * Every request carries a key, so what PostgreSQL said of it is remembered for a few seconds: that is
 * how long a revoked key may still pass. When PostgreSQL is away or slow its last word about a key
 * stays good, because codes are checked in Redis and must stay checkable.
 *
 * Any stranger can make us look a key up. Made-up ones are refused by their checksum; those that pass
 * it share one statement at a time, on one connection of the pool, and no more than so many wait for
 * it, so that no flood of them takes PostgreSQL from valid sends (I21).
 */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createBatcher } from '../base/batcher.ts'
import { newId } from '../base/ids.ts'
import { Unavailable } from '../base/problems.ts'
import type { Database } from '../db/database.ts'
import { createKeyToken, type KeyKind, keyKindOf } from './key-token.ts'

export interface ApiKey {
  id: string
  /** What the key may see. */
  app: string
  kind: KeyKind
  /** Where a publishable key may be used from, as browsers spell it. */
  origins: readonly string[]
}

export interface KeyFacts extends ApiKey {
  name: string
  createdAt: Date
  revokedAt: Date | null
}

/** How long PostgreSQL's word about a key is not asked for again. */
const defaultFreshMs = 5_000
/** Wrong keys are remembered too, so a flood of one asks PostgreSQL once; the bound keeps memory flat. */
const defaultMaxWrong = 10_000
/** Unknown keys that wait for PostgreSQL's word at a time: some twenty statements' worth. */
const defaultMaxAsking = 2_000
const keysPerStatement = 100
/** A flood of unknown keys is asked for this often at most; one that comes alone is asked for at once. */
const strangersApartMs = 10
/** How long a request waits to hear again of a key that is known. */
const patienceMs = 250

export type ApiKeys = ReturnType<typeof createApiKeys>

export function createApiKeys(
  database: Database,
  options: { freshMs?: number; maxWrong?: number; maxAsking?: number } = {},
) {
  const { freshMs = defaultFreshMs, maxWrong = defaultMaxWrong } = options
  const { maxAsking = defaultMaxAsking } = options
  // Apart, so that no flood of wrong keys can push out a right one.
  const known = new Map<string, { key: ApiKey; freshUntilMs: number }>()
  const wrong = new Map<string, { freshUntilMs: number }>()
  const asking = new Map<string, Promise<ApiKey | null>>()
  /** What this process was given by its operator: of any shape, so without a checksum. */
  const given = new Set<string>()

  const lookUp = async (hashes: readonly Buffer[]): Promise<(ApiKey | null)[]> => {
    const rows = await database.query<ApiKey & { hash: Buffer }>('api-key-find', findSql, [hashes])
    const keys = new Map(rows.map(({ hash, ...key }) => [hash.toString('hex'), key]))
    return hashes.map((hash) => keys.get(hash.toString('hex')) ?? null)
  }
  const oneAtATime = { run: lookUp, maxItems: keysPerStatement, maxConcurrent: 1 }
  // Apart, so that a key that is known never waits behind strangers.
  const lookUpKnown = createBatcher(oneAtATime)
  const lookUpStranger = createBatcher({ ...oneAtATime, spacingMs: strangersApartMs })

  async function ask(token: string, isKnown: boolean): Promise<ApiKey | null> {
    const hash = hashOf(token)
    const key = await (isKnown ? lookUpKnown(hash) : lookUpStranger(hash))
    const freshUntilMs = performance.now() + freshMs
    if (key) {
      wrong.delete(token)
      known.set(token, { key, freshUntilMs })
      return key
    }
    known.delete(token)
    if (wrong.size >= maxWrong) wrong.clear()
    wrong.set(token, { freshUntilMs })
    return null
  }

  /** Leaves a key that is there already as it is, also one that another process makes meanwhile. */
  async function insert(token: string, facts: { name: string; app: string }): Promise<string> {
    const id = newId()
    const data = { id, ...facts, kind: 'secret', hash: hashOf(token), createdAt: new Date() }
    await database.read((prisma) => prisma.apiKey.createMany({ data, skipDuplicates: true }))
    wrong.delete(token)
    return id
  }

  return {
    /** Null when there is no such key or it is revoked. Throws Unavailable when that can't be said now. */
    async find(token: string): Promise<ApiKey | null> {
      const nowMs = performance.now()
      const right = known.get(token)
      if (right && right.freshUntilMs > nowMs) return right.key
      const isWrong = wrong.get(token)
      if (isWrong && isWrong.freshUntilMs > nowMs) return null
      if (!right && !given.has(token) && !keyKindOf(token)) return null
      let answer = asking.get(token)
      if (!answer) {
        if (!right && asking.size >= maxAsking) {
          throw new Unavailable('postgresql', undefined, 'too many unknown keys are asked for')
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
    },

    /** Makes a key and returns it; it can't be read again. */
    async create(facts: { name: string; app: string }): Promise<{ id: string; token: string }> {
      const token = createKeyToken('secret')
      return { id: await insert(token, facts), token }
    },

    /**
     * Makes sure that this very key exists (`BOOTSTRAP_SECRET_KEY`); safe from several processes at once.
     * From now on this process takes it without a checksum, also when this call failed.
     */
    async ensure(token: string, facts: { name: string; app: string }): Promise<void> {
      given.add(token)
      await insert(token, facts)
    },

    /** Newest first, revoked ones included. */
    async list(): Promise<KeyFacts[]> {
      const rows = await database.read((prisma) =>
        prisma.apiKey.findMany({ orderBy: { id: 'desc' }, omit: { hash: true } }),
      )
      return rows.map((row) => ({ ...row, kind: row.kind as KeyKind }))
    },

    /** False when there is no such key. Revoking twice is fine. */
    async revoke(id: string): Promise<boolean> {
      const { count } = await database.read((prisma) =>
        prisma.apiKey.updateMany({
          where: { id, revokedAt: null },
          data: { revokedAt: new Date() },
        }),
      )
      if (count > 0) return true
      return (await database.read((prisma) => prisma.apiKey.count({ where: { id } }))) > 0
    },
  }
}

const findSql = `
  SELECT id, app, kind, origins, hash FROM api_key
  WHERE hash = ANY($1::bytea[]) AND (revoked_at IS NULL OR revoked_at > now())`

function hashOf(token: string): Buffer<ArrayBuffer> {
  return createHash('sha256').update(token).digest() as Buffer<ArrayBuffer>
}
