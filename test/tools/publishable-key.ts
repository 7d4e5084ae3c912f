import { createHash, randomUUID } from 'node:crypto'
import { createKeyToken } from '../../src/access/key-token.ts'
import type { TestDatabase } from './database.ts'

/** A key as it may stand in a page, of any app. */
export async function publishableKey(
  database: TestDatabase,
  facts: { app?: string; origins?: readonly string[] } = {},
): Promise<string> {
  const token = createKeyToken('publishable')
  const hash = createHash('sha256').update(token).digest()
  await database.pool.query(
    `INSERT INTO api_key (id, name, app, kind, origins, hash, created_at)
     VALUES ($1, 'page', $2, 'publishable', $3, $4, now())`,
    [randomUUID(), facts.app ?? 'default', facts.origins ?? ['https://shop.example'], hash],
  )
  return token
}
