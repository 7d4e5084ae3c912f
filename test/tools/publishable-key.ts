import { apiKey } from './api-key.ts'
import type { TestDatabase } from './database.ts'

/** A publishable key of any app. */
export const publishableKey = (
  database: TestDatabase,
  facts: { app?: string; origins?: readonly string[] } = {},
): Promise<string> =>
  apiKey(database, { kind: 'publishable', origins: ['https://shop.example'], ...facts })
