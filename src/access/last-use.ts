/**
 * Records when a key was last used, for people who want to revoke one. Rounded to the minute, so a process writes at
 * most once a minute per key. No request waits for it or fails because of it.
 */
import { createBatcher } from '../base/batcher.ts'
import type { Database } from '../storage/database.ts'

const everyMs = 60_000

/** Call the returned function for existing keys only. Invented keys would cost statements and memory. */
export function createLastUse(database: Database): (keyId: string) => void {
  const notedAtMs = new Map<string, number>()
  const write = createBatcher<string, void>({
    run: async (ids) => void (await database.query('api-key-used', usedSql, [ids])),
    maxItems: 100,
    maxConcurrent: 1,
  })

  return (keyId) => {
    const nowMs = performance.now()
    const before = notedAtMs.get(keyId)
    if (before !== undefined && nowMs - before < everyMs) return
    notedAtMs.set(keyId, nowMs)
    // A failed write is not repeated. The key's next use, a minute later, is written.
    write(keyId).catch(() => {})
  }
}

// Another process may have written it just now.
const usedSql = `
  UPDATE api_key SET last_used_at = now()
  WHERE id = ANY($1::uuid[]) AND (last_used_at IS NULL OR last_used_at < now() - interval '30 seconds')`
