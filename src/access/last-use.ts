/**
 * When a key was last used, for people who wonder whether they may revoke one. To the minute is enough, so a
 * process writes it once a minute for a key at most. No request waits for it or fails with it.
 */
import { createBatcher } from '../base/batcher.ts'
import type { Database } from '../storage/database.ts'

const everyMs = 60_000

/** Only for keys that were found: what strangers show must cost no statement, and would fill the memory. */
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
    // The next minute's use writes it.
    write(keyId).catch(() => {})
  }
}

// Another process may have written it a moment ago.
const usedSql = `
  UPDATE api_key SET last_used_at = now()
  WHERE id = ANY($1::uuid[]) AND (last_used_at IS NULL OR last_used_at < now() - interval '30 seconds')`
