import { createHash, randomUUID } from 'node:crypto'
import { createKeyToken } from '../../src/access/key-token.ts'
import type { TestDatabase } from './database.ts'

/** A key of any kind and app, also one that has ended. */
export async function apiKey(
  database: TestDatabase,
  facts: {
    kind?: Parameters<typeof createKeyToken>[0]
    app?: string
    origins?: readonly string[]
    expiresAt?: Date
  } = {},
): Promise<string> {
  const { kind = 'secret', app = 'default', origins = [], expiresAt } = facts
  const token = createKeyToken(kind)
  const hash = createHash('sha256').update(token).digest()
  await database.pool.query(
    `INSERT INTO api_key (id, name, app, kind, origins, hash, created_at, expires_at)
     VALUES ($1, 'test', $2, $3, $4, $5, now(), $6)`,
    [randomUUID(), app, kind, origins, hash, expiresAt],
  )
  return token
}
