/**
 * The origins that valid publishable keys list. Browsers send a preflight without the key, and so can any stranger. So
 * PostgreSQL is queried once a second at most. While it is away, its last answer stays valid.
 */
import { orLate } from '../base/deadline.ts'
import type { Database } from '../storage/database.ts'
import { isActive } from './key-store.ts'

const defaultFreshMs = 1_000
/** How long a request waits for a fresh answer if there is an older one. */
const patienceMs = 250

export function createListedOrigins(database: Database, options: { freshMs?: number } = {}) {
  const { freshMs = defaultFreshMs } = options
  let listed: ReadonlySet<string> | undefined
  let askedAtMs = Number.NEGATIVE_INFINITY
  let asking: Promise<void> | undefined
  let failure: unknown

  async function ask(): Promise<void> {
    askedAtMs = performance.now()
    try {
      const rows = await database.query<{ origin: string }>('origins-listed', listedSql, [])
      listed = new Set(rows.map(({ origin }) => origin))
    } catch (error) {
      failure = error
    } finally {
      asking = undefined
    }
  }

  return {
    /** Throws Unavailable before PostgreSQL's first answer. */
    async has(origin: string): Promise<boolean> {
      if (!asking && performance.now() - askedAtMs >= freshMs) asking = ask()
      if (asking) await (listed ? orLate(asking, patienceMs, () => {}) : asking)
      if (!listed) throw failure
      return listed.has(origin)
    },
  }
}

const listedSql = `
  SELECT DISTINCT unnest(origins) AS origin FROM api_key
  WHERE kind = 'publishable' AND ${isActive}`
